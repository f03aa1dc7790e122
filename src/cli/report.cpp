#include "cli/report.hpp"

#include "cli/annotation.hpp"
#include "cli/report_json.hpp"
#include "cli/report_page.hpp"
#include "cli/report_sections.hpp"
#include "cli/report_tables.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

namespace {

void write_usual_sections(ReportPage& page, const ReportView& view, const ReportOptions& options) {
  const FunctionTables tables = function_tables(view);
  if (view.left.size > 0) {
    write_functions(page, view, tables, options.top);
    write_paths(page, view, options.min_path_percent);
    write_threads(page, view);
    write_processes(page, view);
  }
  write_missed(page, view, tables);
  write_notes(page, view);
}

std::string report_text(const ReportView& view, const ReportOptions& options,
                        const std::vector<Annotation>& annotations) {
  ReportPage page(options, view);
  write_header(page, view, options);
  if (view.left.size == 0) {
    page.line("");
    page.line(view.whole.size == 0 ? "The profile is empty: nothing was sampled."
                                   : "Nothing is left: no sample passes the filter.");
  }
  if (options.modules) write_modules(page, view);
  if (options.lines) write_lines(page, view, options.top);
  for (const Annotation& annotation : annotations) write_annotation(page, view, annotation);
  const bool is_usual = !options.modules && !options.lines && options.annotate.empty();
  if (is_usual) write_usual_sections(page, view, options);
  return std::move(page).text();
}

}  // namespace

Result<std::string> render_report(const Profile& profile, const ReportOptions& options) {
  const ReportView view = TRY(make_report_view(profile, options.sample_type, options.filter));
  std::vector<Annotation> annotations;
  if (!options.annotate.empty()) annotations = TRY(annotate(view, options.annotate, options.source_dir));
  return options.json ? report_json(view, options, annotations) : report_text(view, options, annotations);
}

}  // namespace ddprof
