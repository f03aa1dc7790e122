#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "cli/report_data.hpp"
#include "cli/report_format.hpp"
#include "cli/report_tree.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMinWidth = 60;
constexpr std::size_t kMaxThreads = 10;
constexpr std::size_t kPercentWidth = 7;  // "100.0 %"
constexpr std::size_t kValueWidth = 9;    // "1,023 MiB"
constexpr std::size_t kMaxModuleWidth = 24;

class Report {
 public:
  Report(const Profile& profile, const ReportOptions& options, std::size_t column)
      : profile_(profile),
        options_(options),
        width_(std::max(options.width, kMinWidth)),
        column_(column),
        unit_(profile.text(profile.value_types[column].unit)),
        table_(profile),
        data_(summarize(profile, table_, column)) {}

  std::string render() && {
    header();
    if (data_.total <= 0) {
      text_ += "\nThe profile is empty: nothing was sampled.\n";
    } else {
      functions();
      paths();
      threads();
    }
    missed();
    notes();
    return std::move(text_);
  }

 private:
  void line(std::string text) {
    // Columns are padded; nobody needs the spaces at the end.
    text.erase(text.find_last_not_of(' ') + 1);
    text_ += text + "\n";
  }
  void heading(std::string_view text) {
    text_ += options_.color ? fmt::format("\n\x1b[1m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
  }
  [[nodiscard]] std::string amount(std::int64_t value) const {
    return right_aligned(human_percent(value, data_.total), kPercentWidth) + "  " +
           right_aligned(human_value(value, unit_), kValueWidth);
  }

  void header();
  void functions();
  void paths();
  void threads();
  void missed();
  void notes();
  [[nodiscard]] std::string chain(const PathLine& path, std::size_t room) const;

  const Profile& profile_;
  const ReportOptions& options_;
  std::size_t width_;
  std::size_t column_;
  std::string_view unit_;
  FrameTable table_;
  ReportData data_;
  std::string text_;
};

void Report::header() {
  if (!options_.title.empty()) line(fit(options_.title, width_));
  const std::string_view type = profile_.text(profile_.value_types[column_].type);
  std::string what = fmt::format("{} {}", human_value(data_.total, unit_), type);
  if (profile_.duration_ns > 0) {
    what += fmt::format(" in {}", human_value(profile_.duration_ns, "nanoseconds"));
    if (unit_ == "nanoseconds") {
      what += fmt::format(" ({:.2f} CPUs)",
                          static_cast<double>(data_.total) / static_cast<double>(profile_.duration_ns));
    }
  }
  if (data_.samples > 0) what += fmt::format(", {} samples", human_count(data_.samples));
  line(what);
  std::string where = fmt::format("{} of {}", plural(data_.threads.size(), "thread", "threads"),
                                  plural(data_.processes, "process", "processes"));
  if (profile_.time_ns > 0) where += ", from " + human_time(profile_.time_ns);
  line(where);
}

void Report::functions() {
  heading(fmt::format("Top functions by {}", profile_.text(profile_.value_types[column_].type)));
  const std::size_t shown = std::min(options_.top, data_.functions.size());
  std::size_t module_width = display_width("module");
  for (std::size_t at = 0; at < shown; ++at) {
    module_width = std::max(module_width, display_width(table_[data_.functions[at].frame].module));
  }
  module_width = std::min({module_width, kMaxModuleWidth, width_ / 4});
  const std::size_t amounts = 2 * (kPercentWidth + 2 + kValueWidth) + 4;
  const std::size_t name_width = width_ - amounts - module_width - 2;
  line(right_aligned("self", kPercentWidth + 2 + kValueWidth) + "  " +
       right_aligned("total", kPercentWidth + 2 + kValueWidth) + "  " + left_aligned("function", name_width) +
       "  module");
  for (std::size_t at = 0; at < shown; ++at) {
    const FunctionRow& row = data_.functions[at];
    const NamedFrame& frame = table_[row.frame];
    line(amount(row.self) + "  " + amount(row.total) + "  " +
         left_aligned(fit(frame.name, name_width), name_width) + "  " + fit(frame.module, module_width));
  }
  if (shown == data_.functions.size()) return;
  std::int64_t rest = 0;
  for (std::size_t at = shown; at < data_.functions.size(); ++at)
    rest = saturating_add(rest, data_.functions[at].self);
  line(amount(rest) + "  … " + plural(data_.functions.size() - shown, "more function", "more functions"));
}

// "main → run → work", or its ends when that is too wide.
std::string Report::chain(const PathLine& path, std::size_t room) const {
  std::string whole;
  for (const std::string& name : path.names) whole += (whole.empty() ? "" : " → ") + name;
  if (path.is_more) whole += " → …";
  if (display_width(whole) <= room || path.names.size() == 1) return fit(whole, room);
  const std::string between =
      path.names.size() == 2 ? " → " : fmt::format(" → … {} … → ", path.names.size() - 2);
  const std::size_t share = room - std::min(room, display_width(between));
  const std::string last =
      fit(path.names.back(), share - std::min(share, std::min(share / 2, display_width(path.names.front()))));
  return fit(fit(path.names.front(), share - std::min(share, display_width(last))) + between + last, room);
}

void Report::paths() {
  const auto least =
      static_cast<std::int64_t>(static_cast<double>(data_.total) * options_.min_path_percent / 100.0);
  const std::vector<PathLine> lines = hot_paths(profile_, table_, column_, least, data_.processes > 1);
  if (lines.empty()) return;
  heading(fmt::format("Hottest paths (from {:g} %)", options_.min_path_percent));
  for (const PathLine& path : lines) {
    const std::string amounts = amount(path.value) + "  ";
    const std::size_t indent = std::min(2 * path.depth, width_ / 3);
    line(amounts + std::string(indent, ' ') + chain(path, width_ - amounts.size() - indent));
  }
}

void Report::threads() {
  if (data_.threads.size() < 2) return;
  heading(data_.processes > 1 ? "Threads and processes" : "Threads");
  const std::size_t shown = std::min(kMaxThreads, data_.threads.size());
  const std::size_t room = width_ - kPercentWidth - kValueWidth - 4;
  for (std::size_t at = 0; at < shown; ++at) {
    const ThreadRow& row = data_.threads[at];
    std::string name = row.thread.empty() ? "thread" : row.thread;
    if (!row.thread_id.empty()) name += fmt::format(" ({})", row.thread_id);
    if (data_.processes > 1)
      name += fmt::format(" of {} ({})", row.process.empty() ? "process" : row.process, row.process_id);
    line(amount(row.value) + "  " + fit(name, room));
  }
  if (shown == data_.threads.size()) return;
  std::int64_t rest = 0;
  for (std::size_t at = shown; at < data_.threads.size(); ++at)
    rest = saturating_add(rest, data_.threads[at].value);
  line(amount(rest) + "  … " + plural(data_.threads.size() - shown, "more thread", "more threads"));
}

void Report::missed() {
  heading("What was missed");
  if (data_.missed.empty()) return line("nothing: every stack is complete");
  for (const FunctionRow& row : data_.missed) {
    line(amount(row.total) + "  " + fit(table_[row.frame].name, width_ - kPercentWidth - kValueWidth - 4));
  }
}

void Report::notes() {
  if (profile_.comments.empty()) return;
  heading("Notes");
  for (StringIndex comment : profile_.comments) line(fit(profile_.text(comment), width_));
}

}  // namespace

std::string render_report(const Profile& profile, const ReportOptions& options) {
  const std::optional<std::size_t> column = default_column(profile);
  if (!column) return "The profile has no values.\n";
  return Report(profile, options, *column).render();
}

}  // namespace ddprof
