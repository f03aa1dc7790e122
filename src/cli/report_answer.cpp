#include "cli/report_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "encode/display_text.hpp"
#include "report/lines.hpp"

namespace ddprof {

namespace {

std::string sentence(const Headline& headline, std::size_t name_width) {
  return printable(headline_text(
      headline, [name_width](std::string_view name) { return fit_name(spoken_name(name), name_width); }));
}

std::string place_of(const Payer& payer) {
  if (payer.file.empty()) return payer.is_unnamed ? "no symbols" : payer.module;
  const std::string file(base_name(payer.file));
  return payer.line > 0 ? place(file, payer.line) : file;
}

// A table of two columns behind the amounts; the second is as wide as it needs to be, up to half of the room.
struct AnswerRow {
  std::int64_t value = 0;
  std::string name, detail;
};

void write_rows_of_answer(ReportPage& page, const std::vector<AnswerRow>& rows) {
  const std::size_t room = page.width() - page.amount_width() - 4;
  std::size_t name_width = 0, detail_width = 0;
  for (const AnswerRow& row : rows) {
    name_width = std::max(name_width, display_width(printable(row.name)));
    detail_width = std::max(detail_width, display_width(row.detail));
  }
  name_width = std::min(name_width, std::max(room / 2, room - std::min(room, detail_width)));
  for (const AnswerRow& row : rows) {
    page.line(page.amount(row.value) + "  " + left_aligned(fit_name(row.name, name_width), name_width) +
              "  " + fit_left(row.detail, room - name_width));
  }
}

}  // namespace

void write_answer(ReportPage& page, const ReportView& view, const std::vector<Headline>& headlines) {
  const std::string text = sentence(headlines.front(), std::max<std::size_t>(page.width() / 2, 40));
  if (text.empty()) return;
  page.headline(text);
  std::vector<AnswerRow> rows;
  if (headlines.size() == 1) {
    for (const Payer& payer : headlines.front().payers) {
      if (payer.value < view.left.size / 1000) break;  // 0.0 %
      rows.push_back(
          {payer.value, payer.name.empty() ? "code" : spoken_name(payer.name), printable(place_of(payer))});
    }
  } else {
    for (const Headline& headline : headlines) {
      if (headline.whole < view.left.size / 100) break;
      Headline own_part = headline;
      own_part.process.clear();
      own_part.noun = "it";
      rows.push_back({headline.whole, headline.process, sentence(own_part, page.width() / 3)});
    }
  }
  // One function that the sentence names already is no table.
  if (rows.size() > 1) write_rows_of_answer(page, rows);
}

std::string answer_text(const Profile& profile, std::size_t width, bool color) {
  const auto view = make_report_view(profile);
  if (!view || view->left.size == 0) return {};
  const OwnCode own(profile, view->frames);
  ReportOptions options{.width = width};
  options.color = color;
  ReportPage page(options, *view);
  write_answer(page, *view, headlines_of(*view, own));
  return std::move(page).text();
}

}  // namespace ddprof
