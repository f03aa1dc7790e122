#include "cli/report_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "cli/annotation.hpp"
#include "encode/display_text.hpp"
#include "encode/human_value.hpp"
#include "profile/snapshot.hpp"
#include "report/hot_paths.hpp"
#include "report/own_code.hpp"
#include "report/tables.hpp"

namespace ddprof {

namespace {

constexpr double kWrapper = 0.98;
constexpr std::size_t kMaxModuleWidth = 24;

// Functions with their sums; `rest` tells what the table leaves out.
void write_function_table(ReportPage& page, const ReportView& view, std::span<const SumRow> shown,
                          std::span<const SumRow> rest) {
  std::size_t module_width = display_width("module");
  for (const SumRow& row : shown)
    module_width = std::max(module_width, display_width(view.frames[row.id].module));
  module_width = page.is_narrow() ? 0 : std::min({module_width, kMaxModuleWidth, page.width() / 4});
  const std::size_t modules = module_width == 0 ? 0 : module_width + 2;
  // The module stands beside the names, not at the end of a wide screen.
  const std::size_t room = page.width() - 2 * page.amount_width() - 4 - modules;
  std::size_t name_width = display_width("function");
  for (const SumRow& row : shown)
    name_width = std::max(name_width, display_width(fit_name(view.frames[row.id].name, room)));
  page.line(page.amount_titles() + "  " + left_aligned("function", name_width) +
            (modules > 0 ? "  module" : ""));
  for (const SumRow& row : shown) {
    const NamedFrame& frame = view.frames[row.id];
    page.line(page.amount(row.sum.self) + "  " + page.amount(row.sum.total) + "  " +
              left_aligned(fit_name(frame.name, name_width), name_width) + "  " +
              fit(frame.module, module_width));
  }
  if (rest.empty()) return;
  const auto self =
      std::accumulate(rest.begin(), rest.end(), std::int64_t{0},
                      [](std::int64_t sum, const SumRow& row) { return saturating_add(sum, row.sum.self); });
  page.line(page.amount(self) + "  … " + plural(rest.size(), "more function", "more functions"));
}

// "work ← run ← … 7 more": of callers, the nearest count.
std::string nearest_callers(const PathLine& path, std::size_t room, std::string_view arrow) {
  std::string text = fit_name(spoken_name(path.names.front()), room);
  for (std::size_t shown = 1; shown < path.names.size(); ++shown) {
    const std::string more = fmt::format(" {} … {} more", arrow, path.names.size() - shown);
    const std::size_t used = display_width(text) + display_width(arrow) + 2 + display_width(more);
    const std::string name = printable(spoken_name(path.names[shown]));
    if (used + display_width(name) <= room) {
      text += fmt::format(" {} {}", arrow, name);
      continue;
    }
    constexpr std::size_t kLegible = 16;
    if (shown == 1 && used + kLegible <= room) {
      text += fmt::format(" {} {}", arrow, fit_name(name, room - used));
      continue;
    }
    return display_width(text) + display_width(more) <= room ? text + more : text;
  }
  return text;
}

// "main → run → work", or its ends when that is too wide.
std::string chain(const PathLine& path, std::size_t room, std::string_view arrow) {
  std::string end = path.is_recursive ? " (recursive)" : "";
  if (path.is_more) end += fmt::format(" {} …", arrow);
  std::string whole;
  for (std::string_view name : path.names) {
    whole += (whole.empty() ? "" : fmt::format(" {} ", arrow)) + printable(spoken_name(name));
    if (whole.size() > room * 4) break;  // wider than the room in any script
  }
  whole += end;
  if (display_width(whole) <= room) return whole;
  if (arrow == kCallerArrow) return nearest_callers(path, room, arrow);
  const std::string first = spoken_name(path.names.front()), last = spoken_name(path.names.back());
  const std::size_t end_width = std::min(display_width(end), room);
  if (path.names.size() == 1) return fit_name(first, room - end_width) + end;
  const std::string between = path.names.size() == 2
                                  ? fmt::format(" {} ", arrow)
                                  : fmt::format(" {0} … {1} … {0} ", arrow, path.names.size() - 2);
  const std::size_t share = room - std::min(room, display_width(between) + end_width);
  // The last name has the larger part: it is the one that the line is about.
  const std::size_t first_width = std::min(share / 3, display_width(printable(first)));
  const std::string shown = fit_name(last, share - first_width);
  return fit_name(first, share - display_width(shown)) + between + shown + end;
}

// A name with its number, each if it is known.
std::string who(std::string_view name, std::string_view id, std::string_view otherwise) {
  std::string text(name.empty() ? otherwise : name);
  return id.empty() ? text : text + fmt::format(" ({})", id);
}

// The first rows in full, the rest as one.
template <typename Name>
void write_values(ReportPage& page, std::span<const ValueRow> rows, std::size_t most, std::string_view noun,
                  Name&& name_of) {
  const std::size_t room = page.width() - page.amount_width() - 2;
  // One more costs no more lines than to say that it is left out.
  const auto shown = rows.first(rows.size() <= most + 1 ? rows.size() : most);
  for (const ValueRow& row : shown) page.line(page.amount(row.value) + "  " + fit(name_of(row.id), room));
  const auto rest = rows.subspan(shown.size());
  if (rest.empty()) return;
  std::int64_t sum = 0;
  for (const ValueRow& row : rest) sum = saturating_add(sum, row.value);
  const std::string nouns = fmt::format("more {}{}", noun, noun.ends_with('s') ? "es" : "s");
  page.line(page.amount(sum) + "  … " + plural(rest.size(), fmt::format("more {}", noun), nouns));
}

// "1.10 MiB to 13.4 MiB in 59 min"
std::string change(const LiveGrowth& growth) {
  return fmt::format("{} to {} in {}", human_value(growth.before, "bytes"),
                     human_value(growth.after, "bytes"), human_duration(growth.over.count()));
}

std::string what_it_is(const ReportView& view, const std::optional<LiveGrowth>& growth) {
  std::string what = fmt::format("{} {}", human_value(view.left.value, view.unit), view.type);
  const std::int64_t duration = view.profile.duration_ns;
  if (growth && growth->is_view)
    return fmt::format("{} that was not there before (live bytes: {}); stacks with less now lost {}", what,
                       change(*growth), human_value(growth->freed, "bytes"));
  if (is_snapshot(view.type)) {
    what += fmt::format(" at the end of {}", human_duration(duration));
    return growth ? what + fmt::format(" (live bytes: {})", change(*growth)) : what;
  }
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

// A column that only counts the samples is not worth a line.
void write_other_types(ReportPage& page, const ReportView& view) {
  std::vector<std::string_view> others;
  for (std::size_t column = 0; column < view.profile.value_types.size(); ++column) {
    if (column != view.column && samples_column(view.profile) != column)
      others.push_back(view.profile.text(view.profile.value_types[column].type));
  }
  if (others.empty()) return;
  page.paragraph(fmt::format("shown is {}; also in this profile: {} (--sample-type {})", view.type,
                             fmt::join(others, ", "), others.front()));
}

}  // namespace

void write_header(ReportPage& page, const ReportView& view, const ReportOptions& options) {
  if (!options.title.empty()) page.line(fit(options.title, page.width()));
  page.paragraph(what_it_is(view, options.growth));
  std::string where = plural(view.by_thread.processes.size(), "process", "processes");
  if (!is_snapshot(view.type))
    where = fmt::format("{} of {}", plural(view.by_thread.threads.size(), "thread", "threads"), where);
  if (view.profile.time_ns > 0) where += ", from " + human_time(view.profile.time_ns);
  page.paragraph(where);
  write_other_types(page, view);
  write_filter(page, view);
  if (view.left.size > size_of_value(view.left.value)) {
    page.paragraph(fmt::format("values of both signs: percentages are of the sum of their sizes, {}",
                               human_value(view.left.size, view.unit)));
  }
}

void write_functions(ReportPage& page, const ReportView& view, const FunctionTables& tables,
                     const ReportScale& scale) {
  if (tables.by_self.empty()) return;  // nothing but markers
  // A row without a value of its own is in the table of totals, where it says something.
  const std::span<const SumRow> by_self = tables.by_self;
  const auto with_self = static_cast<std::size_t>(
      std::find_if(by_self.begin(), by_self.end(), [](const SumRow& row) { return row.sum.self == 0; }) -
      by_self.begin());
  const std::size_t shown = std::min(scale.rows, with_self);
  page.heading(fmt::format("Top functions by {}", view.type));
  write_function_table(page, view, by_self.first(shown), by_self.first(with_self).subspan(shown));
  if (!scale.is_long) return;
  // Nor do those say anything through which everything goes.
  const std::span<const SumRow> by_total = tables.by_total;
  const auto is_wrapper = [&](const SumRow& row) {
    return row.sum.self == 0 && static_cast<double>(size_of_value(row.sum.total)) >=
                                    kWrapper * static_cast<double>(view.left.size);
  };
  std::vector<SumRow> told;
  std::copy_if(by_total.begin(), by_total.end(), std::back_inserter(told),
               [&](const SumRow& row) { return !is_wrapper(row); });
  if (told.empty()) return;
  page.heading(fmt::format("Top functions by {} with what they call", view.type));
  if (const std::size_t wrappers = by_total.size() - told.size(); wrappers > 0)
    page.line(fmt::format("{} with 98 % and more, none of it their own, not shown",
                          plural(wrappers, "function", "functions")));
  const std::size_t most = std::min(scale.rows, told.size());
  write_function_table(page, view, std::span(told).first(most), std::span(told).subspan(most));
}

void write_path_lines(ReportPage& page, std::span<const PathLine> lines, std::string_view arrow) {
  const std::size_t step = page.is_narrow() ? 1 : 2;
  for (const PathLine& path : lines) {
    const std::size_t indent = std::min(step * path.depth, page.width() / 4);
    const std::size_t room = page.width() - page.amount_width() - 2 - indent;
    page.line(page.amount(path.value) + "  " + std::string(indent, ' ') + chain(path, room, arrow));
  }
}

void write_paths(ReportPage& page, const ReportView& view, double min_percent, const ReportScale& scale) {
  const auto least = static_cast<std::int64_t>(static_cast<double>(view.left.size) * min_percent / 100.0);
  const std::vector<PathLine> lines =
      folded(hot_paths(view, least, view.by_thread.processes.size() > 1), scale.paths);
  if (lines.empty()) return;
  page.heading("Hottest paths");
  write_path_lines(page, lines, "→");
}

void write_threads(ReportPage& page, const ReportView& view, const ReportScale& scale) {
  const std::vector<ValueRow>& rows = view.by_thread.threads;
  // What is alive is told by stack: the thread is the first one that had it.
  if (rows.size() < 2 || is_snapshot(view.type)) return;
  const bool with_process = view.by_thread.processes.size() > 1;
  page.heading("Threads");
  write_values(page, rows, scale.threads, "thread", [&](std::uint32_t id) {
    const SampledThread& thread = view.threads.threads()[id];
    const SampledProcess& process = view.threads.processes()[thread.process];
    const std::string name = who(thread.name, thread.id, "thread");
    return with_process ? name + " of " + who(process.name, process.id, "process") : name;
  });
}

void write_ages(ReportPage& page, const ReportView& view) {
  if (!is_snapshot(view.type)) return;
  std::vector<std::int64_t> sums(kAgeNames.size());
  std::int64_t told = 0;
  for (const std::uint32_t at : view.selected.samples) {
    const ProfileSample& sample = view.profile.samples[at];
    const auto age =
        std::find(kAgeNames.begin(), kAgeNames.end(), label_text(view.profile, sample, kAgeLabel));
    if (age == kAgeNames.end()) continue;
    std::int64_t& sum = sums[static_cast<std::size_t>(age - kAgeNames.begin())];
    sum = saturating_add(sum, sample.values[view.column]);
    told = saturating_add(told, size_of_value(sample.values[view.column]));
  }
  if (told == 0) return;
  page.heading("How long it is alive");
  for (std::size_t age = 0; age < sums.size(); ++age)
    if (sums[age] != 0) page.line(page.amount(sums[age]) + "  " + std::string(kAgeNames[age]));
}

void write_processes(ReportPage& page, const ReportView& view, const ReportScale& scale) {
  const std::vector<ValueRow>& rows = view.by_thread.processes;
  if (rows.size() < 2) return;
  page.heading("Processes");
  write_values(page, rows, scale.threads, "process", [&](std::uint32_t id) {
    const SampledProcess& process = view.threads.processes()[id];
    return who(process.name, process.id, "process");
  });
}

void write_missed(ReportPage& page, const ReportView& view, const FunctionTables& tables,
                  const ReportScale& scale) {
  page.heading(tables.missed.empty() ? "What was missed: nothing, every stack is complete"
                                     : "What was missed");
  std::vector<ValueRow> rows;
  for (const SumRow& row : tables.missed) rows.push_back({row.id, row.sum.total});
  if (!rows.empty())
    write_values(page, rows, scale.threads, "reason", [&](std::uint32_t id) { return view.frames[id].name; });
  constexpr int kMaxHints = 4;  // those of later periods say the same
  int hints = 0;
  for (StringIndex comment : view.profile.comments) {
    const std::string_view text = view.profile.text(comment);
    if (text.starts_with(kHintComment) && hints++ < kMaxHints) page.paragraph(text);
  }
}

void write_notes(ReportPage& page, const ReportView& view, const ReportScale& scale) {
  std::vector<std::string_view> notes;
  for (StringIndex comment : view.profile.comments) {
    const std::string_view text = view.profile.text(comment);
    // Those are in the table of modules, or below what was missed.
    if (!text.starts_with(kNamesComment) && !text.starts_with(kHintComment)) notes.push_back(text);
  }
  if (notes.empty()) return;
  page.heading("Notes");
  if (!scale.is_long) return page.paragraph(fmt::format("{}", fmt::join(notes, "; ")));
  for (std::string_view note : notes) page.line(fit(note, page.width()));
}

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
