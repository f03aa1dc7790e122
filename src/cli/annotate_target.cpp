#include "cli/annotate_target.hpp"

#include <algorithm>
#include <set>

#include "encode/display_text.hpp"
#include "report/own_code.hpp"

namespace ddprof {

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

}  // namespace ddprof
