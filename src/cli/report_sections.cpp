#include "cli/report_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "encode/display_text.hpp"
#include "encode/human_value.hpp"
#include "report/hot_paths.hpp"
#include "report/modules.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxThreads = 10;
constexpr std::size_t kMaxModuleWidth = 24;

void write_function_table(ReportPage& page, const ReportView& view, std::span<const SumRow> rows,
                          std::size_t top) {
  const auto shown = rows.first(std::min(top, rows.size()));
  std::size_t module_width = display_width("module");
  for (const SumRow& row : shown)
    module_width = std::max(module_width, display_width(view.frames[row.id].module));
  module_width = std::min({module_width, kMaxModuleWidth, page.width() / 4});
  const std::size_t name_width = page.width() - 2 * ReportPage::kAmountWidth - 4 - module_width - 2;
  page.line(ReportPage::amount_titles() + "  " + left_aligned("function", name_width) + "  module");
  for (const SumRow& row : shown) {
    const NamedFrame& frame = view.frames[row.id];
    page.line(page.amount(row.sum.self) + "  " + page.amount(row.sum.total) + "  " +
              left_aligned(fit_name(frame.name, name_width), name_width) + "  " +
              fit(frame.module, module_width));
  }
  const auto rest = rows.subspan(shown.size());
  if (rest.empty()) return;
  const auto self =
      std::accumulate(rest.begin(), rest.end(), std::int64_t{0},
                      [](std::int64_t sum, const SumRow& row) { return saturating_add(sum, row.sum.self); });
  page.line(page.amount(self) + "  … " + plural(rest.size(), "more function", "more functions"));
}

// "main → run → work", or its ends when that is too wide.
std::string chain(const PathLine& path, std::size_t room) {
  const std::string more = path.is_more ? " → …" : "";
  std::string whole;
  for (std::string_view name : path.names) {
    whole += (whole.empty() ? "" : " → ") + printable(name);
    if (whole.size() > room * 4) break;  // wider than the room in any script
  }
  whole += more;
  if (display_width(whole) <= room) return whole;
  if (path.names.size() == 1) return fit_name(path.names.front(), room - display_width(more)) + more;
  const std::string between =
      (path.names.size() == 2 ? " → " : fmt::format(" → … {} … → ", path.names.size() - 2));
  const std::size_t share = room - std::min(room, display_width(between + more));
  const std::size_t first_width = std::min(share / 2, display_width(printable(path.names.front())));
  const std::string last = fit_name(path.names.back(), share - first_width);
  return fit_name(path.names.front(), share - display_width(last)) + between + last + more;
}

// A name with its number, each if it is known.
std::string who(std::string_view name, std::string_view id, std::string_view otherwise) {
  std::string text(name.empty() ? otherwise : name);
  return id.empty() ? text : text + fmt::format(" ({})", id);
}

// The first rows in full, the rest as one.
template <typename Name>
void write_values(ReportPage& page, std::span<const ValueRow> rows, std::string_view noun, Name&& name_of) {
  const auto shown = rows.first(std::min(kMaxThreads, rows.size()));
  const std::size_t room = page.width() - ReportPage::kAmountWidth - 2;
  for (const ValueRow& row : shown) page.line(page.amount(row.value) + "  " + fit(name_of(row.id), room));
  const auto rest = rows.subspan(shown.size());
  if (rest.empty()) return;
  std::int64_t sum = 0;
  for (const ValueRow& row : rest) sum = saturating_add(sum, row.value);
  const std::string nouns = fmt::format("more {}{}", noun, noun.ends_with('s') ? "es" : "s");
  page.line(page.amount(sum) + "  … " + plural(rest.size(), fmt::format("more {}", noun), nouns));
}

std::string what_it_is(const ReportView& view) {
  std::string what = fmt::format("{} {}", human_value(view.left.value, view.unit), view.type);
  const std::int64_t duration = view.profile.duration_ns;
  if (duration > 0) {
    what += fmt::format(" in {}", human_value(duration, "nanoseconds"));
    if (view.unit == "nanoseconds") {
      const double cpus = static_cast<double>(view.left.value) / static_cast<double>(duration);
      what += fmt::format(" ({:.2f} CPUs)", cpus);
    }
  }
  if (view.left.samples > 0) what += fmt::format(", {} samples", human_count(view.left.samples));
  return what;
}

void write_filter(ReportPage& page, const ReportView& view) {
  if (view.selected.descriptions.empty()) return;
  page.paragraph(fmt::format("only {}: {} of {} ({})", fmt::join(view.selected.descriptions, ", "),
                             human_value(view.left.size, view.unit), human_value(view.whole.size, view.unit),
                             human_percent(view.left.size, view.whole.size)));
}

}  // namespace

void write_header(ReportPage& page, const ReportView& view, const ReportOptions& options) {
  if (!options.title.empty()) page.line(fit(options.title, page.width()));
  page.paragraph(what_it_is(view));
  std::string where = fmt::format("{} of {}", plural(view.by_thread.threads.size(), "thread", "threads"),
                                  plural(view.by_thread.processes.size(), "process", "processes"));
  if (view.profile.time_ns > 0) where += ", from " + human_time(view.profile.time_ns);
  page.paragraph(where);
  write_filter(page, view);
  if (view.left.size > size_of_value(view.left.value)) {
    page.paragraph(fmt::format("values of both signs: percentages are of the sum of their sizes, {}",
                               human_value(view.left.size, view.unit)));
  }
}

void write_functions(ReportPage& page, const ReportView& view, const FunctionTables& tables,
                     std::size_t top) {
  if (tables.by_self.empty()) return;  // nothing but markers
  page.heading(fmt::format("Top functions by {}", view.type));
  write_function_table(page, view, tables.by_self, top);
  page.heading(fmt::format("Top functions by {} with what they call", view.type));
  write_function_table(page, view, tables.by_total, top);
}

void write_paths(ReportPage& page, const ReportView& view, double min_percent) {
  const auto least = static_cast<std::int64_t>(static_cast<double>(view.left.size) * min_percent / 100.0);
  const std::vector<PathLine> lines = hot_paths(view, least, view.by_thread.processes.size() > 1);
  if (lines.empty()) return;
  page.heading(fmt::format("Hottest paths (from {:g} %)", min_percent));
  for (const PathLine& path : lines) {
    const std::size_t indent = std::min(2 * path.depth, page.width() / 3);
    const std::size_t room = page.width() - ReportPage::kAmountWidth - 2 - indent;
    page.line(page.amount(path.value) + "  " + std::string(indent, ' ') + chain(path, room));
  }
}

void write_threads(ReportPage& page, const ReportView& view) {
  const std::vector<ValueRow>& rows = view.by_thread.threads;
  if (rows.size() < 2) return;
  const bool with_process = view.by_thread.processes.size() > 1;
  page.heading("Threads");
  write_values(page, rows, "thread", [&](std::uint32_t id) {
    const SampledThread& thread = view.threads.threads()[id];
    const SampledProcess& process = view.threads.processes()[thread.process];
    const std::string name = who(thread.name, thread.id, "thread");
    return with_process ? name + " of " + who(process.name, process.id, "process") : name;
  });
}

void write_processes(ReportPage& page, const ReportView& view) {
  const std::vector<ValueRow>& rows = view.by_thread.processes;
  if (rows.size() < 2) return;
  page.heading("Processes");
  write_values(page, rows, "process", [&](std::uint32_t id) {
    const SampledProcess& process = view.threads.processes()[id];
    return who(process.name, process.id, "process");
  });
}

void write_missed(ReportPage& page, const ReportView& view, const FunctionTables& tables) {
  page.heading("What was missed");
  if (tables.missed.empty()) return page.line("nothing: every stack is complete");
  for (const SumRow& row : tables.missed) {
    page.line(page.amount(row.sum.total) + "  " +
              fit(view.frames[row.id].name, page.width() - ReportPage::kAmountWidth - 2));
  }
}

void write_notes(ReportPage& page, const ReportView& view) {
  bool has_heading = false;
  for (StringIndex comment : view.profile.comments) {
    const std::string_view text = view.profile.text(comment);
    if (text.starts_with(kNamesComment)) continue;  // in the table of modules
    if (!std::exchange(has_heading, true)) page.heading("Notes");
    page.line(fit(text, page.width()));
  }
}

}  // namespace ddprof
