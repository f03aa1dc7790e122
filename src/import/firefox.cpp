#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

#include "encode/human_value.hpp"
#include "encode/viewer_formats.hpp"
#include "import/firefox_stacks.hpp"
#include "import/foreign_formats.hpp"
#include "import/json_document.hpp"
#include "import/sample_merger.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

namespace json = boost::json;

constexpr int kOldestFirefox = 60, kNewestFirefox = 70;
constexpr double kNanosecondsInMillisecond = 1e6;

[[nodiscard]] Error bad_firefox(std::string_view reason) {
  return make_error(ErrorCode::corrupt, "read Firefox profile: {}", reason);
}

std::string text_or_number(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  if (value == nullptr) return {};
  if (const std::optional<std::int64_t> number = json_integer(*value)) return fmt::format("{}", *number);
  return std::string(json_text(*value));
}

class FirefoxDecoder {
 public:
  FirefoxDecoder(const json::object& root, std::size_t memory_bytes)
      : root_(root), budget_(memory_bytes), merger_(budget_) {}

  Result<Profile> decode() && {
    TRY(read_meta());
    FirefoxStacks stacks = TRY(FirefoxStacks::read(root_, builder_, budget_));
    const json::array* threads = json_array(root_, "threads");
    if (threads == nullptr) return bad_firefox("it has no threads");
    for (const json::value& value : *threads) {
      const json::object* thread = value.if_object();
      if (thread == nullptr) return bad_firefox("a thread is not an object");
      TRY(read_thread(*thread, stacks));
    }
    std::move(merger_).move_into(builder_, builder_.profile().value_types.size());
    Profile profile = std::move(builder_).build();
    for (ProfileSample& sample : profile.samples) sample.values.resize(profile.value_types.size());
    return profile;
  }

 private:
  Result<void> read_meta() {
    const json::object* meta = json_object(root_, "meta");
    if (meta == nullptr) return bad_firefox("it has no meta");
    const double version = json_number(*meta, "preprocessedProfileVersion").value_or(0);
    if (version < kOldestFirefox || version > kNewestFirefox) {
      return with_hint(make_error(ErrorCode::unsupported, "read Firefox profile: version {}, not {} to {}",
                                  version, kOldestFirefox, kNewestFirefox),
                       "open it in profiler.firefox.com and save it again");
    }
    Profile& profile = builder_.profile();
    profile.time_ns = rounded(json_number(*meta, "startTime").value_or(0) * kNanosecondsInMillisecond);
    profile.duration_ns =
        rounded(json_number(*meta, "profilingEndTime").value_or(0) * kNanosecondsInMillisecond);
    profile.period = rounded(json_number(*meta, "interval").value_or(0) * kNanosecondsInMillisecond);
    profile.period_type = builder_.value_type("cpu", "nanoseconds");
    if (json_text(*meta, "importedFrom").starts_with(kFirefoxExporter)) read_extra(*meta);
    return {};
  }

  // What only our own files say.
  void read_extra(const json::object& meta) {
    has_times_ = false;
    const json::array* sections = json_array(meta, "extra");
    if (sections == nullptr || sections->empty()) return;
    const json::object* section = (*sections)[0].if_object();
    const json::array* entries = section != nullptr ? json_array(*section, "entries") : nullptr;
    if (entries == nullptr) return;
    for (const json::value& value : *entries) {
      const json::object* entry = value.if_object();
      if (entry == nullptr) continue;
      const std::string_view label = json_text(*entry, "label"), text = json_text(*entry, "value");
      if (label == kFirefoxTimes) has_times_ = text == kFirefoxMeasured;
      if (label == kFirefoxComment) builder_.profile().comments.push_back(builder_.intern(text));
      if (label == kFirefoxWeights) weights_ = text;
    }
  }

  struct Weight {
    std::size_t column = 0;
    double factor = 1;
  };

  Result<Weight> choose_column(std::string_view weight_type) {
    std::string_view type = "samples", unit = "count";
    if (weight_type == "tracing-ms") type = "time", unit = "nanoseconds";
    if (weight_type == "bytes") type = "space", unit = "bytes";
    if (const std::size_t slash = weights_.rfind('/'); slash != std::string_view::npos) {
      type = weights_.substr(0, slash);
      unit = weights_.substr(slash + 1);
    }
    double factor = 1;
    if (const auto nanoseconds = nanoseconds_per(unit); nanoseconds && weight_type == "tracing-ms")
      factor = kNanosecondsInMillisecond / static_cast<double>(*nanoseconds);
    const std::optional<std::size_t> column = find_or_add_column(builder_, type, unit);
    if (!column) return bad_firefox("it has too many kinds of weights");
    return Weight{*column, factor};
  }

  Result<void> read_thread(const json::object& thread, FirefoxStacks& stacks) {
    const json::object* samples = json_object(thread, "samples");
    if (samples == nullptr) return bad_firefox("a thread has no samples");
    std::string pid = text_or_number(thread, "pid");
    if (pid == "0") pid.clear();
    std::vector<ProfileLabel> labels =
        thread_labels(builder_, json_text(thread, "name"), text_or_number(thread, "tid"),
                      json_text(thread, "processName"), pid);
    const Weight weight = TRY(choose_column(json_text(*samples, "weightType")));
    merger_.label_thread(thread_count_, labels);
    TRY(read_samples(*samples, stacks, weight, labels));
    ++thread_count_;
    return {};
  }

  Result<void> read_samples(const json::object& samples, FirefoxStacks& stacks, const Weight& weight,
                            const std::vector<ProfileLabel>& labels) {
    const json::array* stack_column = json_array(samples, "stack");
    if (stack_column == nullptr) return bad_firefox("samples have no stacks");
    const json::array* weights = json_array(samples, "weight");
    const json::array* times = json_array(samples, "time");
    const json::array* deltas = times != nullptr ? nullptr : json_array(samples, "timeDeltas");
    const auto fits = [&](const json::array* column) {
      return column == nullptr || column->size() == stack_column->size();
    };
    if (!fits(weights) || !fits(times) || !fits(deltas))
      return bad_firefox("columns of samples differ in length");
    double time = 0;
    for (std::size_t row = 0; row < stack_column->size(); ++row) {
      if (times != nullptr) time = json_number((*times)[row]).value_or(time);
      if (deltas != nullptr) time += json_number((*deltas)[row]).value_or(0);
      const double value = weights != nullptr ? json_number((*weights)[row]).value_or(0) : 1;
      const std::vector<std::uint32_t> locations = TRY(locations_of((*stack_column)[row], stacks));
      const bool is_added =
          has_times_ ? add_timed(locations, weight.column, rounded(value * weight.factor), time, labels)
                     : merger_.add(thread_count_, locations, weight.column, rounded(value * weight.factor));
      if (!is_added) return bad_firefox("too large");
    }
    return {};
  }

  Result<std::vector<std::uint32_t>> locations_of(const json::value& value, FirefoxStacks& stacks) {
    if (value.is_null()) return std::vector<std::uint32_t>();
    const std::optional<std::int64_t> index = json_integer(value);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= stacks.size())
      return bad_firefox("a sample has a stack that does not exist");
    std::optional<std::vector<std::uint32_t>> locations =
        stacks.locations(static_cast<std::uint32_t>(*index));
    if (!locations) return bad_firefox("too large");
    return *std::move(locations);
  }

  bool add_timed(const std::vector<std::uint32_t>& locations, std::size_t column, std::int64_t value,
                 double milliseconds, const std::vector<ProfileLabel>& labels) {
    const std::size_t bytes = sizeof(ProfileSample) + (labels.size() + 1) * sizeof(ProfileLabel) +
                              kMaxColumns * sizeof(std::int64_t);
    if (!budget_.take(bytes)) return false;
    ProfileSample sample{locations, std::vector<std::int64_t>(column + 1), labels};
    sample.values[column] = value;
    const std::int64_t time =
        saturating_add(builder_.profile().time_ns, rounded(milliseconds * kNanosecondsInMillisecond));
    sample.labels.push_back(builder_.number_label(kEndTimestampLabel, time, "nanoseconds"));
    builder_.add_sample(std::move(sample));
    return true;
  }

  const json::object& root_;
  MemoryBudget budget_;
  ProfileBuilder builder_;
  SampleMerger merger_;
  std::uint32_t thread_count_ = 0;
  bool has_times_ = true;     // the times of the samples are those at which they were taken
  std::string_view weights_;  // "cpu/nanoseconds", when the file says so
};

}  // namespace

Result<Profile> decode_firefox(std::string_view text, const DecodeLimits& limits) {
  const JsonDocument document = TRY(JsonDocument::parse(text, limits.memory_bytes));
  return FirefoxDecoder(document.root(), limits.memory_bytes).decode();
}

}  // namespace ddprof
