#include "cli/report_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "encode/display_text.hpp"
#include "encode/human_value.hpp"
#include "report/lines.hpp"
#include "report/modules.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kBuildIdWidth = 12;  // as git shortens: enough to compare by eye

}  // namespace

void write_modules(ReportPage& page, const ReportView& view) {
  const std::vector<ModuleRow> rows = module_rows(view);
  page.heading(fmt::format("Modules by {}", view.type));
  std::size_t path_width = display_width("module"), names_width = display_width("names from");
  for (const ModuleRow& row : rows) {
    path_width = std::max(path_width, display_width(printable(row.path)));
    names_width = std::max(names_width, display_width(printable(row.names)));
  }
  const std::size_t room = page.width() - 2 * page.amount_width() - 6;
  // Paths give way first: both of their ends tell what is meant.
  names_width = std::min(names_width, room / 2);
  path_width = std::min(path_width, room - names_width);
  const bool with_build_id = path_width + names_width + 2 + kBuildIdWidth <= room;
  page.line(page.amount_titles() + "  " + left_aligned("module", path_width) + "  " +
            left_aligned("names from", names_width) + (with_build_id ? "  build id" : ""));
  for (const ModuleRow& row : rows) {
    page.line(page.amount(row.sum.self) + "  " + page.amount(row.sum.total) + "  " +
              left_aligned(fit(row.path, path_width), path_width) + "  " +
              left_aligned(fit(row.names, names_width), names_width) +
              (with_build_id ? "  " + printable(row.build_id.substr(0, kBuildIdWidth)) : ""));
  }
}

void write_lines(ReportPage& page, const ReportView& view, std::size_t top) {
  const LineTable table = line_table(view);
  page.heading(fmt::format("Lines by {}", view.type));
  if (table.rows.empty()) return page.line("The profile has no source lines.");
  const auto shown = std::span(table.rows).first(std::min(top, table.rows.size()));
  const auto place_of = [&](const LineRow& row) { return place(view.profile.text(row.file), row.line); };
  std::size_t place_width = display_width("line");
  for (const LineRow& row : shown)
    place_width = std::max(place_width, display_width(printable(place_of(row))));
  const std::size_t room = page.width() - 2 * page.amount_width() - 6;
  place_width = std::min(place_width, room * 2 / 3);
  page.line(page.amount_titles() + "  " + left_aligned("line", place_width) + "  function");
  for (const LineRow& row : shown) {
    page.line(page.amount(row.sum.self) + "  " + page.amount(row.sum.total) + "  " +
              left_aligned(fit(place_of(row), place_width), place_width) + "  " +
              fit_name(view.frames[row.frame].name, room - place_width));
  }
  std::int64_t rest = 0;
  for (const LineRow& row : std::span(table.rows).subspan(shown.size()))
    rest = saturating_add(rest, row.sum.self);
  if (shown.size() < table.rows.size())
    page.line(page.amount(rest) + "  … " +
              plural(table.rows.size() - shown.size(), "more line", "more lines"));
  if (table.unknown != 0) page.line(page.amount(table.unknown) + "  in code of unknown lines");
}

}  // namespace ddprof
