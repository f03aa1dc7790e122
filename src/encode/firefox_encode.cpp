#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "encode/escaped_text.hpp"
#include "encode/firefox_categories.hpp"
#include "encode/firefox_tables.hpp"
#include "encode/human_value.hpp"
#include "encode/thread_samples.hpp"
#include "encode/viewer_formats.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kFirefoxVisibleThreads = 12;
constexpr double kNanosecondsPerMillisecond = 1e6;

double milliseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / kNanosecondsPerMillisecond;
}

void append_numbers(std::string& out, std::string_view name, const std::vector<double>& numbers) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
  append_json_array(out, numbers, [](std::string& text, double number) {
    fmt::format_to(std::back_inserter(text), "{}", number);
  });
}

// What a sample weighs: the default column, in the one of the format's three units that fits.
class FirefoxWeights {
 public:
  explicit FirefoxWeights(const Profile& profile) : profile_(profile), column_(default_column(profile)) {
    if (!column_) return;
    const std::string_view unit = profile.text(profile.value_types[*column_].unit);
    if (const auto nanoseconds = nanoseconds_per(unit)) {
      scale_ = static_cast<double>(*nanoseconds) / kNanosecondsPerMillisecond;
      type_ = "tracing-ms";
    } else if (unit == "bytes") {
      type_ = "bytes";
    }
  }

  [[nodiscard]] double of(const ProfileSample& sample) const {
    return column_ ? static_cast<double>(sample.values[*column_]) * scale_ : 1;
  }
  [[nodiscard]] std::string_view type() const { return type_; }
  [[nodiscard]] bool is_time() const { return type_ == "tracing-ms"; }
  // "cpu/nanoseconds", for those who read the file again.
  [[nodiscard]] std::string name() const {
    if (!column_) return {};
    const ValueType& type = profile_.value_types[*column_];
    return fmt::format("{}/{}", profile_.text(type.type), profile_.text(type.unit));
  }

 private:
  const Profile& profile_;
  std::optional<std::size_t> column_;
  double scale_ = 1;
  std::string_view type_ = "samples";
};

class FirefoxEncoder {
 public:
  explicit FirefoxEncoder(const Profile& profile)
      : profile_(profile), tables_(profile), weights_(profile), threads_(samples_by_thread(profile)) {}

  std::string encode() && {
    std::string threads;
    append_json_array(threads, threads_,
                      [&](std::string& out, const ThreadSamples& thread) { write_thread(out, thread); });
    std::string json = "{\"meta\":";
    write_meta(json);
    json += ",\n\"libs\":" + tables_.libs_json();
    json += ",\n\"pages\":[],\"counters\":[],\"profilerOverhead\":[]";
    json += ",\n\"shared\":" + tables_.shared_json();
    json += ",\n\"threads\":" + threads + "}\n";
    return json;
  }

 private:
  [[nodiscard]] double interval() const {
    const auto unit = nanoseconds_per(profile_.text(profile_.period_type.unit));
    const double period = unit ? milliseconds(profile_.period) * static_cast<double>(*unit) : 0;
    return period > 0 ? period : 1;
  }

  void write_meta(std::string& out) const {
    fmt::format_to(std::back_inserter(out),
                   "{{\"interval\":{},\"startTime\":{},\"profilingStartTime\":0,\"profilingEndTime\":{},"
                   "\"preprocessedProfileVersion\":{},\"version\":24,\"processType\":0,\"product\":",
                   interval(), milliseconds(profile_.time_ns), milliseconds(profile_.duration_ns),
                   kFirefoxVersion);
    append_json_string(out, threads_.empty() || threads_[0].process.empty() ? "ddprof" : threads_[0].process);
    out += ",\"importedFrom\":\"ddprof " DDPROF_VERSION
           "\",\"stackwalk\":1,\"symbolicated\":true,\"debug\":false";
    out += ",\"categories\":";
    out += kFirefoxCategories;
    out += ",\"markerSchema\":[],\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]}";
    out += ",\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"µs\"}";
    out +=
        ",\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true";
    write_shown_threads(out);
    write_extra(out);
    out += '}';
  }

  // Which threads are open at first: the hottest, as far as a screen goes.
  void write_shown_threads(std::string& out) const {
    out += ",\"initialSelectedThreads\":";
    out += threads_.empty() ? "[]" : "[0]";
    FirefoxTables::Column shown;
    for (std::size_t at = 0; at < threads_.size() && at < kFirefoxVisibleThreads; ++at)
      shown.push_back(static_cast<std::int64_t>(at));
    append_firefox_column(out, "initialVisibleThreads", shown);
  }

  // Shown under "more info": what the weights are, and the profile's comments.
  void write_extra(std::string& out) const {
    out += ",\"extra\":[{\"label\":\"ddprof\",\"entries\":[{\"label\":\"" + std::string(kFirefoxWeights) +
           "\",\"format\":\"string\","
           "\"value\":";
    append_json_string(out, weights_.name());
    const bool has_times = std::all_of(threads_.begin(), threads_.end(),
                                       [](const ThreadSamples& thread) { return thread.has_times; });
    fmt::format_to(std::back_inserter(out), "}},{{\"label\":\"{}\",\"format\":\"string\",\"value\":\"{}\"}}",
                   kFirefoxTimes, has_times ? kFirefoxMeasured : "laid out by weight");
    for (const StringIndex comment : profile_.comments) {
      out += ",{\"label\":\"Comment\",\"format\":\"string\",\"value\":";
      append_json_string(out, profile_.text(comment));
      out += '}';
    }
    out += "]}]";
  }

  void write_thread(std::string& out, const ThreadSamples& thread) {
    out += out.back() == '[' ? "{\"name\":" : "\n{\"name\":";
    append_json_string(out, thread.name);
    out += ",\"processName\":";
    append_json_string(out, thread.process);
    out += ",\"pid\":";
    append_json_string(out, thread.pid.empty() ? "0" : thread.pid);
    out += ",\"tid\":";
    const bool is_number = !thread.tid.empty() && thread.tid.size() < 16 &&
                           thread.tid.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
      out += thread.tid;
    } else {
      append_json_string(out, thread.tid);
    }
    fmt::format_to(
        std::back_inserter(out),
        ",\"isMainThread\":{},\"processType\":\"default\",\"processStartupTime\":0,"
        "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
        "\"showMarkersInTimeline\":false,",
        thread.tid == thread.pid);
    out +=
        "\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
        "\"category\":[]},";
    write_samples(out, thread);
    out += '}';
  }

  void write_samples(std::string& out, const ThreadSamples& thread) {
    FirefoxTables::Column stacks;
    std::vector<double> weights;
    for (std::uint32_t index : thread.samples) {
      stacks.push_back(tables_.stack(profile_.samples[index]));
      weights.push_back(weights_.of(profile_.samples[index]));
    }
    fmt::format_to(std::back_inserter(out), "\"samples\":{{\"length\":{}", stacks.size());
    append_firefox_column(out, "stack", stacks);
    append_numbers(out, "timeDeltas", thread.has_times ? measured_deltas(thread) : laid_out_deltas(weights));
    append_numbers(out, "weight", weights);
    fmt::format_to(std::back_inserter(out), ",\"weightType\":\"{}\"}}", weights_.type());
  }

  [[nodiscard]] std::vector<double> measured_deltas(const ThreadSamples& thread) const {
    std::vector<double> deltas;
    std::int64_t before = profile_.time_ns;
    for (std::uint32_t index : thread.samples) {
      const std::int64_t time = sample_time_ns(profile_, profile_.samples[index]).value_or(before);
      deltas.push_back(milliseconds(time - before));
      before = time;
    }
    return deltas;
  }

  // Each sample begins where the one before it ends. Weights that are no times share the duration.
  [[nodiscard]] std::vector<double> laid_out_deltas(const std::vector<double>& weights) const {
    double total = 0;
    for (const double weight : weights) total += std::abs(weight);
    const double length = weights_.is_time() ? total : milliseconds(profile_.duration_ns);
    const double scale = total > 0 && length > 0 ? length / total : 1;
    std::vector<double> deltas;
    double before = 0;
    for (const double weight : weights) {
      deltas.push_back(before * scale);
      before = std::abs(weight);
    }
    return deltas;
  }

  const Profile& profile_;
  FirefoxTables tables_;
  FirefoxWeights weights_;
  std::vector<ThreadSamples> threads_;
};

}  // namespace

std::string encode_firefox(const Profile& profile) { return FirefoxEncoder(profile).encode(); }

}  // namespace ddprof
