#include "cli/annotation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "encode/display_text.hpp"
#include "encode/human_value.hpp"
#include "report/own_code.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kShortListing = 50;  // shown whole
constexpr std::size_t kMaxHotRows = 60;
constexpr std::size_t kContext = 3;

}  // namespace

std::vector<const ListingRow*> hottest_rows(const std::vector<ListingRow>& rows, std::size_t count) {
  std::vector<const ListingRow*> hot;
  for (const ListingRow& row : rows) {
    if (row.sum.self != 0 || row.sum.total != 0) hot.push_back(&row);
  }
  const auto rank = [](const ListingRow* row) {
    return std::tuple(-size_of_value(row->sum.self), -size_of_value(row->sum.total), row->number);
  };
  std::sort(hot.begin(), hot.end(),
            [&](const ListingRow* left, const ListingRow* right) { return rank(left) < rank(right); });
  if (hot.size() > count) hot.resize(count);
  return hot;
}

void keep_hot_rows(std::vector<ListingRow>& rows) {
  if (rows.size() <= kShortListing) return;
  std::vector<bool> is_kept(rows.size());
  for (const ListingRow* hot : hottest_rows(rows, kMaxHotRows)) {
    const auto at = static_cast<std::size_t>(hot - rows.data());
    const std::size_t first = at - std::min(at, kContext), last = std::min(at + kContext, rows.size() - 1);
    for (std::size_t near = first; near <= last; ++near) is_kept[near] = true;
  }
  std::vector<ListingRow> kept;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (is_kept[at]) kept.push_back(std::move(rows[at]));
  }
  rows = std::move(kept);
}

namespace {

constexpr std::size_t kMaxCandidates = 8;
constexpr std::size_t kMaxSameName = 4;
constexpr std::size_t kCandidateWidth = 70;

// "ns::Type<int>::run(int)" -> "run", "main.(*Store).Get" -> "Get". What an operator is called is left as it
// is.
std::string plain_name(std::string_view name) {
  const std::string whole = qualified_name(name);
  const std::size_t scope = whole.find_last_of(":. ");
  return scope == std::string::npos ? whole : whole.substr(scope + 1);
}

template <typename Matches>
std::vector<SumRow> matching(const ReportView& view, std::span<const SumRow> rows, Matches&& matches) {
  std::vector<SumRow> found;
  for (const SumRow& row : rows) {
    if (matches(view.frames[row.id].name)) found.push_back(row);
  }
  return found;
}

bool is_one_name(const ReportView& view, std::span<const SumRow> rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const SumRow& row) {
    return view.frames[row.id].name == view.frames[rows.front().id].name;
  });
}

Error too_many(const ReportView& view, std::span<const SumRow> rows, const std::string& name,
               std::string_view option) {
  std::vector<std::string> names;
  for (const SumRow& row : rows) {
    std::string candidate = fit_name(view.frames[row.id].name, kCandidateWidth);
    if (std::find(names.begin(), names.end(), candidate) == names.end()) names.push_back(candidate);
    if (names.size() == kMaxCandidates) break;
  }
  return make_error(ErrorCode::invalid_argument, "{} {}: {} functions match: {}{}", option, name, rows.size(),
                    fmt::join(names, ", "), rows.size() > names.size() ? ", …" : "");
}

}  // namespace

Result<std::vector<SumRow>> find_functions(const ReportView& view, const FunctionTables& tables,
                                           const std::string& name, std::string_view option) {
  const std::span<const SumRow> rows = tables.by_total;
  std::vector<SumRow> found = matching(view, rows, [&](const std::string& known) { return known == name; });
  if (found.empty())
    found = matching(view, rows, [&](const std::string& known) { return plain_name(known) == name; });
  if (found.empty()) {
    found =
        matching(view, rows, [&](const std::string& known) { return known.find(name) != std::string::npos; });
  }
  if (found.empty()) {
    return with_hint(
        make_error(ErrorCode::not_found, "{} {}: no function with samples has this name", option, name),
        "ddprof report FILE lists functions");
  }
  if (!is_one_name(view, found)) return too_many(view, found, name, option);
  if (found.size() > kMaxSameName) found.resize(kMaxSameName);
  return found;
}

namespace {

constexpr std::size_t kHottestRows = 3;
constexpr std::size_t kTab = 4;

// Tabs would be replaced as control characters.
std::string without_tabs(std::string_view text) {
  std::string result;
  for (char letter : text) {
    if (letter == '\t') {
      result.append(kTab - result.size() % kTab, ' ');
    } else {
      result += letter;
    }
  }
  return result;
}

std::string code_text(std::string_view text, std::size_t width) {
  return fit_left(without_tabs(text), width);
}

using NumberText = std::string (*)(std::uint64_t);

std::string line_number(std::uint64_t number) { return fmt::format("{}", number); }
std::string code_address(std::uint64_t number) { return fmt::format("{:x}", number); }

// What the eye should find first, before the listing itself.
void write_hottest(ReportPage& page, const ReportView& view, const Listing& listing, NumberText number_text,
                   std::string_view noun) {
  std::vector<std::string> texts;
  for (const ListingRow* row : hottest_rows(listing.rows, kHottestRows)) {
    if (row->sum.self == 0) continue;
    texts.push_back(
        fmt::format("{} {}", number_text(row->number), human_percent(row->sum.self, view.left.size)));
  }
  if (!texts.empty()) page.paragraph(fmt::format("hottest {}: {}", noun, fmt::join(texts, ", ")));
}

void write_rows(ReportPage& page, const Listing& listing, NumberText number_text, bool is_code) {
  const std::size_t amounts = 2 * page.amount_width() + 4;
  std::size_t number_width = 0, place_width = 0;
  for (const ListingRow& row : listing.rows) {
    number_width = std::max(number_width, number_text(row.number).size());
    place_width = std::max(place_width, display_width(printable(row.place)));
  }
  place_width = std::min(place_width, page.width() / 4);
  const std::size_t places = place_width == 0 ? 0 : place_width + 2;
  const std::size_t room = page.width() - std::min(page.width() - 8, amounts + number_width + 2 + places);
  page.line(page.amount_titles());
  std::uint64_t last = 0;
  for (const ListingRow& row : listing.rows) {
    const bool is_gap = !is_code && last != 0 && row.number != last + 1;
    if (is_gap) page.line(std::string(amounts, ' ') + right_aligned("…", number_width));
    last = row.number;
    std::string text = page.amount_if_any(row.sum.self) + "  " + page.amount_if_any(row.sum.total) + "  " +
                       right_aligned(number_text(row.number), number_width) + "  ";
    if (places != 0) text += left_aligned(fit(row.place, place_width), place_width) + "  ";
    page.line(text + code_text(row.text, room));
  }
}

void write_listing(ReportPage& page, const ReportView& view, const Listing& listing, bool is_code) {
  const NumberText number_text = is_code ? code_address : line_number;
  if (!listing.note.empty()) page.paragraph(listing.note);
  if (!listing.problem.empty()) page.paragraph(listing.problem);
  if (listing.rows.empty()) return;
  write_hottest(page, view, listing, number_text, is_code ? "instructions" : "lines");
  write_rows(page, listing, number_text, is_code);
}

}  // namespace

Result<std::vector<Annotation>> annotate(const ReportView& view, const std::string& name,
                                         const std::string& source_dir) {
  std::vector<Annotation> annotations;
  for (const SumRow& function : TRY(find_functions(view, function_tables(view), name, "--annotate"))) {
    annotations.push_back(
        {function, annotate_source(view, function.id, source_dir), annotate_code(view, function.id)});
  }
  return annotations;
}

void write_annotation(ReportPage& page, const ReportView& view, const Annotation& annotation) {
  const NamedFrame& frame = view.frames[annotation.function.id];
  const std::string module = frame.module.empty() ? "" : fmt::format(" in {}", frame.module);
  page.heading(fit_name(frame.name, page.width() - std::min(page.width() / 2, display_width(module))) +
               module);
  const StackSum& sum = annotation.function.sum;
  page.paragraph(fmt::format("self {} ({}), total {} ({})", human_value(sum.self, view.unit),
                             human_percent(sum.self, view.left.size), human_value(sum.total, view.unit),
                             human_percent(sum.total, view.left.size)));
  if (annotation.source.empty()) {
    page.heading("Source");
    page.paragraph("the profile has no lines of this function");
  }
  for (const Listing& listing : annotation.source) {
    page.heading("Source: " + listing.title);
    write_listing(page, view, listing, false);
  }
  for (const Listing& listing : annotation.code) {
    page.heading(listing.title.empty() ? "Assembly" : "Assembly: " + listing.title);
    write_listing(page, view, listing, true);
  }
}

}  // namespace ddprof
