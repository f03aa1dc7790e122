#include "cli/report.hpp"

#include "base/text_pattern.hpp"
#include "cli/annotation.hpp"
#include "cli/report_answer.hpp"
#include "cli/report_calls.hpp"
#include "cli/report_json.hpp"
#include "cli/report_page.hpp"
#include "cli/report_sections.hpp"
#include "cli/report_tables.hpp"
#include "report/headline.hpp"
#include "report/view.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kUsualRows = 20;  // where the rest of the screen is free
constexpr std::size_t kCallLines = 30;

void write_usual_sections(ReportPage& page, const ReportView& view, const ReportOptions& options,
                          const std::vector<Headline>& headlines) {
  const FunctionTables tables = function_tables(view);
  const ReportScale scale = ReportScale::of(options.top);
  if (view.left.size > 0) {
    write_answer(page, view, headlines);
    write_functions(page, view, tables, scale);
    write_paths(page, view, options.min_path_percent, scale);
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
  return options.json ? report_json(view, options, parts) : report_text(view, options, parts);
}

}  // namespace ddprof
