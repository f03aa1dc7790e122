#include "cli/report_calls.hpp"

#include <fmt/format.h>

#include "cli/annotate_target.hpp"
#include "cli/report_sections.hpp"
#include "encode/display_text.hpp"
#include "encode/human_value.hpp"

namespace ddprof {

namespace {

constexpr std::int64_t kSmallestPart = 100;  // of the function: one percent

}  // namespace

Result<std::vector<CallTree>> call_trees(const ReportView& view, const std::string& name,
                                         PathDirection direction) {
  const std::string_view option = direction == PathDirection::callers ? "--callers" : "--callees";
  std::vector<CallTree> trees;
  for (const SumRow& function : TRY(find_functions(view, function_tables(view), name, option))) {
    const std::int64_t least = size_of_value(function.sum.total) / kSmallestPart;
    trees.push_back({function, direction, paths_from(view, function.id, direction, least)});
  }
  return trees;
}

void write_call_tree(ReportPage& page, const ReportView& view, const CallTree& tree, std::size_t most_lines) {
  const bool is_up = tree.direction == PathDirection::callers;
  const NamedFrame& frame = view.frames[tree.function.id];
  const std::string_view what = is_up ? "What calls " : "What is called by ";
  page.heading(fmt::format("{}{}", what, fit_name(frame.name, page.width() - display_width(what))));
  const StackSum& sum = tree.function.sum;
  page.paragraph(fmt::format("self {} ({}), total {} ({})", human_value(sum.self, view.unit),
                             human_percent(sum.self, view.left.size), human_value(sum.total, view.unit),
                             human_percent(sum.total, view.left.size)));
  write_path_lines(page, folded(tree.paths, most_lines), is_up ? kCallerArrow : "→");
}

}  // namespace ddprof
