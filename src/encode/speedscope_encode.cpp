#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "encode/escaped_text.hpp"
#include "encode/thread_samples.hpp"
#include "encode/viewer_formats.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kSeparator = " · ";
constexpr std::string_view kSum = "all threads";
constexpr std::string_view kNameless = "samples";  // of a thread without a name
constexpr std::string_view kTid = "tid ", kPid = "pid ";

void append_part(std::string& title, std::string_view prefix, std::string_view part) {
  if (part.empty()) return;
  title += prefix;
  title += part;
  title += kSeparator;
}

// Takes the part before the next separator off `text`; the rest when there is none.
std::string_view take_part(std::string_view& text) {
  const std::size_t end = text.find(kSeparator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + kSeparator.size());
  return part;
}

}  // namespace

std::string speedscope_title(const SpeedscopeTitle& title) {
  std::string text;
  append_part(text, "", title.is_sum ? kSum : title.thread.empty() ? kNameless : title.thread);
  append_part(text, kTid, title.tid);
  append_part(text, "", title.process);
  append_part(text, kPid, title.pid);
  return text + title.column;
}

SpeedscopeTitle parse_speedscope_title(std::string_view text) {
  SpeedscopeTitle title;
  const std::size_t last = text.rfind(kSeparator);
  if (last == std::string_view::npos) return {.thread = std::string(text)};
  title.column = text.substr(last + kSeparator.size());
  text = text.substr(0, last);
  const std::string_view thread = take_part(text);
  title.is_sum = thread == kSum && text.empty();
  if (thread != kNameless) title.thread = thread;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    if (part.starts_with(kTid)) {
      title.tid = part.substr(kTid.size());
    } else if (part.starts_with(kPid)) {
      title.pid = part.substr(kPid.size());
    } else {
      title.process = part;
    }
  }
  return title;
}

namespace {

constexpr std::array<std::string_view, 5> kSpeedscopeUnits{"nanoseconds", "microseconds", "milliseconds",
                                                           "seconds", "bytes"};

std::string_view speedscope_unit(std::string_view unit) {
  const auto* known = std::find(kSpeedscopeUnits.begin(), kSpeedscopeUnits.end(), unit);
  return known == kSpeedscopeUnits.end() ? "none" : *known;
}

// The frames of the file, written as they are first used.
class SpeedscopeFrames {
 public:
  explicit SpeedscopeFrames(const Profile& profile) : profile_(profile), table_(profile) {
    frames_of_.resize(profile.locations.size());
  }

  // Root first.
  std::vector<std::uint32_t> stack(const ProfileSample& sample) {
    std::vector<std::uint32_t> stack;
    for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
      const std::vector<std::uint32_t>& frames = frames_of(*location);
      stack.insert(stack.end(), frames.begin(), frames.end());
    }
    return stack;
  }

  std::uint32_t named(std::string_view name) { return add(name, {}, 0); }

  [[nodiscard]] const std::string& json() const { return json_; }

 private:
  const std::vector<std::uint32_t>& frames_of(std::uint32_t index) {
    std::vector<std::uint32_t>& frames = frames_of_[index];
    if (!frames.empty()) return frames;
    const ProfileLocation& location = profile_.locations[index];
    const auto names = table_.frames(index);
    for (std::size_t at = names.size(); at-- > 0;) {
      const ProfileFunction* function =
          at < location.lines.size() ? &profile_.functions[location.lines[at].function] : nullptr;
      frames.push_back(add(table_[names[at]].name, file_of(location, function),
                           function != nullptr ? function->start_line : 0));
    }
    return frames;
  }

  std::string_view file_of(const ProfileLocation& location, const ProfileFunction* function) const {
    if (function != nullptr && function->file != 0) return profile_.text(function->file);
    return location.mapping != kNoMapping ? profile_.text(profile_.mappings[location.mapping].path)
                                          : std::string_view();
  }

  std::uint32_t add(std::string_view name, std::string_view file, std::int64_t line) {
    const auto [entry, is_new] =
        known_.try_emplace(std::tuple(std::string(name), std::string(file), line), known_.size());
    if (!is_new) return entry->second;
    json_ += json_.empty() ? "{\"name\":" : ",\n{\"name\":";
    append_json_string(json_, name);
    if (!file.empty()) {
      json_ += ",\"file\":";
      append_json_string(json_, file);
    }
    if (line > 0) fmt::format_to(std::back_inserter(json_), ",\"line\":{}", line);
    json_ += '}';
    return entry->second;
  }

  const Profile& profile_;
  FrameTable table_;
  std::vector<std::vector<std::uint32_t>> frames_of_;  // by location, outermost first
  absl::flat_hash_map<std::tuple<std::string, std::string, std::int64_t>, std::uint32_t> known_;
  std::string json_;
};

struct WeightedStack {
  std::vector<std::uint32_t> frames;
  std::vector<std::int64_t> values;  // one per column
};

// Equal stacks are added up. In the order of their frames, so that calls of one function stand side by side
// in the view that is drawn in file order.
class StackSums {
 public:
  void add(std::vector<std::uint32_t> frames, std::span<const std::int64_t> values) {
    std::vector<std::int64_t>& sums = sums_[std::move(frames)];
    sums.resize(values.size());
    for (std::size_t at = 0; at < values.size(); ++at) sums[at] = saturating_add(sums[at], values[at]);
  }

  [[nodiscard]] std::vector<WeightedStack> sorted() && {
    std::vector<WeightedStack> stacks;
    for (const auto& [frames, values] : sums_) stacks.push_back({frames, values});
    std::sort(stacks.begin(), stacks.end(), [](const WeightedStack& left, const WeightedStack& right) {
      return left.frames < right.frames;
    });
    return stacks;
  }

 private:
  absl::flat_hash_map<std::vector<std::uint32_t>, std::vector<std::int64_t>> sums_;
};

class SpeedscopeEncoder {
 public:
  explicit SpeedscopeEncoder(const Profile& profile)
      : profile_(profile), frames_(profile), threads_(samples_by_thread(profile)) {}

  std::string encode() && {
    if (threads_.size() > 1) write_sum();
    for (const ThreadSamples& thread : threads_) write_thread(thread);
    std::string json = "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",";
    json += "\"exporter\":\"ddprof@" DDPROF_VERSION "\",\"name\":";
    append_json_string(json, title());
    fmt::format_to(std::back_inserter(json), ",\"activeProfileIndex\":{},\n", active_);
    json += "\"shared\":{\"frames\":[\n" + frames_.json() + "\n]},\n\"profiles\":[\n" + entries_ + "\n]}\n";
    return json;
  }

 private:
  std::string title() const {
    if (!threads_.empty() && !threads_[0].process.empty()) return threads_[0].process;
    if (profile_.mappings.empty()) return "profile";
    return std::string(base_name(profile_.text(profile_.mappings[0].path)));
  }

  // All threads: stacks of different processes get the process as their root.
  void write_sum() {
    const bool has_processes = std::any_of(threads_.begin(), threads_.end(), [&](const ThreadSamples& one) {
      return one.process != threads_[0].process || one.pid != threads_[0].pid;
    });
    StackSums sums;
    for (const ThreadSamples& thread : threads_) {
      const std::uint32_t root = has_processes ? frames_.named(process_frame(thread)) : 0;
      for (std::uint32_t index : thread.samples) {
        std::vector<std::uint32_t> stack = frames_.stack(profile_.samples[index]);
        if (has_processes) stack.insert(stack.begin(), root);
        sums.add(std::move(stack), profile_.samples[index].values);
      }
    }
    write_entries({.is_sum = true}, std::move(sums).sorted());
  }

  static std::string process_frame(const ThreadSamples& thread) {
    if (thread.pid.empty()) return thread.process.empty() ? "unknown process" : thread.process;
    return fmt::format("{} {}", thread.process.empty() ? "process" : thread.process, thread.pid);
  }

  void write_thread(const ThreadSamples& thread) {
    const SpeedscopeTitle title{thread.name, thread.tid, thread.process, thread.pid, {}};
    std::vector<WeightedStack> stacks;
    StackSums sums;
    for (std::uint32_t index : thread.samples) {
      const ProfileSample& sample = profile_.samples[index];
      if (thread.has_times) {
        stacks.push_back({frames_.stack(sample), sample.values});
      } else {
        sums.add(frames_.stack(sample), sample.values);
      }
    }
    write_entries(title, thread.has_times ? stacks : std::move(sums).sorted());
  }

  // One entry per column, the default one being the first that people see.
  void write_entries(SpeedscopeTitle title, const std::vector<WeightedStack>& stacks) {
    for (std::size_t column = 0; column < profile_.value_types.size(); ++column) {
      std::string samples, weights;
      std::int64_t total = 0;
      for (const WeightedStack& stack : stacks) {
        if (stack.values[column] == 0) continue;
        append_stack(samples, stack.frames);
        fmt::format_to(std::back_inserter(weights), "{}{}", weights.empty() ? "" : ",", stack.values[column]);
        total = saturating_add(total, stack.values[column]);
      }
      if (samples.empty()) continue;
      title.column = profile_.text(profile_.value_types[column].type);
      if (!has_active_ && column == default_column(profile_)) {
        active_ = entry_count_;
        has_active_ = true;
      }
      write_entry(title, speedscope_unit(profile_.text(profile_.value_types[column].unit)), total, samples,
                  weights);
    }
  }

  static void append_stack(std::string& samples, std::span<const std::uint32_t> frames) {
    if (!samples.empty()) samples += ',';
    append_json_array(samples, frames, [](std::string& out, std::uint32_t frame) {
      fmt::format_to(std::back_inserter(out), "{}", frame);
    });
  }

  void write_entry(const SpeedscopeTitle& title, std::string_view unit, std::int64_t total,
                   std::string_view samples, std::string_view weights) {
    entries_ +=
        entry_count_++ == 0 ? "{\"type\":\"sampled\",\"name\":" : ",\n{\"type\":\"sampled\",\"name\":";
    append_json_string(entries_, speedscope_title(title));
    fmt::format_to(
        std::back_inserter(entries_),
        ",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},\n\"samples\":[{}],\n\"weights\":[{}]}}", unit,
        total, samples, weights);
  }

  const Profile& profile_;
  SpeedscopeFrames frames_;
  std::vector<ThreadSamples> threads_;
  std::string entries_;
  std::size_t entry_count_ = 0;
  std::size_t active_ = 0;
  bool has_active_ = false;
};

bool has_negative_values(const Profile& profile) {
  return std::any_of(profile.samples.begin(), profile.samples.end(), [](const ProfileSample& sample) {
    return std::any_of(sample.values.begin(), sample.values.end(),
                       [](std::int64_t value) { return value < 0; });
  });
}

}  // namespace

Result<std::string> encode_speedscope(const Profile& profile) {
  if (has_negative_values(profile)) {
    return with_hint(make_error(ErrorCode::unsupported, "write speedscope: it cannot hold negative values"),
                     "pprof and folded stacks can: choose .pb.gz or .folded");
  }
  return SpeedscopeEncoder(profile).encode();
}

}  // namespace ddprof
