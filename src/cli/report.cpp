#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/text_pattern.hpp"
#include "cli/annotation.hpp"
#include "cli/report_json.hpp"
#include "cli/report_page.hpp"
#include "cli/report_sections.hpp"
#include "encode/display_text.hpp"
#include "encode/human_value.hpp"
#include "report/headline.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

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

// What a report begins with and a recording ends with: the headline, and below it who pays. `headlines` has
// one, or one for each of several processes.
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

// What else of the profile is worth a sentence: who holds memory, or who asks for it.
std::string other_answer(const ReportView& shown) {
  for (const std::string type : {"inuse_space", "alloc_space"}) {
    if (shown.type == type) return {};
    const auto view = make_report_view(shown.profile, type);
    if (!view || view->left.size == 0) continue;
    return sentence(headlines_of(*view, OwnCode(shown.profile, view->frames)).front(), 40) +
           fmt::format(" (--sample-type {})", type);
  }
  return {};
}

// How fast live bytes grow, for its sentence.
void add_growth(std::vector<Headline>& headlines, const ReportView& view,
                const std::optional<LiveGrowth>& growth) {
  if (!growth || view.type != "inuse_space" || headlines.empty() || growth->over < std::chrono::seconds(1))
    return;
  const double minutes = std::chrono::duration<double, std::ratio<60>>(growth->over).count();
  const auto rate = std::llround(static_cast<double>(growth->after - growth->before) / minutes);
  if (growth->is_view) headlines.front().noun = human_value(view.left.size, view.unit) + " growth";
  if (rate != 0 && !growth->is_view)
    headlines.front().growth =
        fmt::format(", {} {}/min", rate > 0 ? "growing" : "shrinking", human_value(std::abs(rate), "bytes"));
}

constexpr std::size_t kUsualRows = 20;  // where the rest of the screen is free
constexpr std::size_t kCallLines = 30;

void write_usual_sections(ReportPage& page, const ReportView& view, const ReportOptions& options,
                          const std::vector<Headline>& headlines) {
  const FunctionTables tables = function_tables(view);
  const ReportScale scale = ReportScale::of(options.top);
  if (view.left.size > 0) {
    write_answer(page, view, headlines);
    if (const std::string other = other_answer(view); !other.empty()) page.headline(other);
    write_functions(page, view, tables, scale);
    write_paths(page, view, options.min_path_percent, scale);
    write_ages(page, view);
    write_threads(page, view, scale);
    write_processes(page, view, scale);
  }
  write_missed(page, view, tables, scale);
  write_notes(page, view, scale);
}

std::string report_text(const ReportView& view, const ReportOptions& options, const ReportParts& parts) {
  ReportPage page(options, view);
  write_header(page, view, options);
  if (view.left.size == 0) {
    page.line("");
    page.line(view.whole.size == 0 ? "The profile is empty: nothing was sampled."
                                   : "Nothing is left: no sample passes the filter.");
  }
  if (options.modules) write_modules(page, view);
  if (options.lines) write_lines(page, view, options.top > 0 ? options.top : kUsualRows);
  for (const CallTree& tree : parts.calls)
    write_call_tree(page, view, tree, options.top > 0 ? options.top : kCallLines);
  for (const Annotation& annotation : parts.annotations) write_annotation(page, view, annotation);
  if (is_usual(options)) write_usual_sections(page, view, options, parts.headlines);
  return std::move(page).text();
}

Result<OwnCode> own_code(const ReportView& view, const std::string& expression) {
  if (expression.empty()) return OwnCode(view.profile, view.frames);
  auto pattern = TextPattern::compile(expression);
  if (pattern) return OwnCode(view.profile, view.frames, &*pattern);
  pattern.error().message.insert(0, "--own: ");
  return std::move(pattern).error();
}

}  // namespace

bool is_usual(const ReportOptions& options) {
  return !options.modules && !options.lines && options.annotate.empty() && options.callers.empty() &&
         options.callees.empty();
}

Result<std::string> render_report(const Profile& profile, const ReportOptions& options) {
  const ReportView view = TRY(make_report_view(profile, options.sample_type, options.filter));
  ReportParts parts;
  if (!options.annotate.empty())
    parts.annotations = TRY(annotate(view, options.annotate, options.source_dir));
  const auto add_calls = [&](const std::string& name, PathDirection direction) -> Result<void> {
    if (name.empty()) return {};
    for (CallTree& tree : TRY(call_trees(view, name, direction))) parts.calls.push_back(std::move(tree));
    return {};
  };
  TRY(add_calls(options.callers, PathDirection::callers));
  TRY(add_calls(options.callees, PathDirection::callees));
  const OwnCode own = TRY(own_code(view, options.own));
  if (is_usual(options)) parts.headlines = headlines_of(view, own);
  add_growth(parts.headlines, view, options.growth);
  return options.json ? report_json(view, options, parts) : report_text(view, options, parts);
}

std::string answer_text(const Profile& profile, std::size_t width, bool color) {
  const auto view = make_report_view(profile);
  if (!view || view->left.size == 0) return {};
  const OwnCode own(profile, view->frames);
  ReportOptions options{.width = width};
  options.color = color;
  ReportPage page(options, *view);
  write_answer(page, *view, headlines_of(*view, own));
  if (const std::string other = other_answer(*view); !other.empty()) page.headline(other);
  return std::move(page).text();
}

}  // namespace ddprof
