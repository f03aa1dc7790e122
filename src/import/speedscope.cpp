#include <absl/container/flat_hash_map.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>
#include <vector>

#include "encode/human_value.hpp"
#include "encode/viewer_formats.hpp"
#include "import/foreign_formats.hpp"
#include "import/json_document.hpp"
#include "import/sample_merger.hpp"

namespace ddprof {

namespace {

namespace json = boost::json;

[[nodiscard]] Error bad_speedscope(std::string_view reason) {
  return make_error(ErrorCode::corrupt, "read speedscope: {}", reason);
}

class SpeedscopeDecoder {
 public:
  SpeedscopeDecoder(const json::object& root, std::size_t memory_bytes)
      : root_(root),
        budget_(memory_bytes),
        merger_(budget_),
        is_ours_(json_text(root, "exporter").starts_with("ddprof@")) {}

  Result<Profile> decode() && {
    TRY(read_frames());
    const json::array* profiles = json_array(root_, "profiles");
    if (profiles == nullptr) return bad_speedscope("it has no profiles");
    const std::optional<double> active = json_number(root_, "activeProfileIndex");
    for (std::size_t at = 0; at < profiles->size(); ++at) {
      const json::object* profile = (*profiles)[at].if_object();
      if (profile == nullptr) return bad_speedscope("a profile is not an object");
      TRY(read_profile(*profile, active && *active == static_cast<double>(at)));
    }
    const std::size_t columns = builder_.profile().value_types.size();
    std::move(merger_).move_into(builder_, columns);
    return std::move(builder_).build();
  }

 private:
  struct Scale {
    std::size_t column = 0;
    double factor = 1;
  };

  Result<void> read_frames() {
    const json::object* shared = json_object(root_, "shared");
    const json::array* frames = shared != nullptr ? json_array(*shared, "frames") : nullptr;
    if (frames == nullptr) return bad_speedscope("it has no shared frames");
    for (const json::value& value : *frames) {
      const json::object* frame = value.if_object();
      if (frame == nullptr) return bad_speedscope("a frame is not an object");
      const std::int64_t number = rounded(json_number(*frame, "line").value_or(0));
      const std::uint32_t function =
          builder_.add_function(json_text(*frame, "name"), {}, json_text(*frame, "file"), number);
      const ProfileLine line{function, number, rounded(json_number(*frame, "col").value_or(0))};
      locations_.push_back(builder_.add_location(kNoMapping, {}, std::span(&line, 1)));
    }
    return {};
  }

  Result<void> read_profile(const json::object& entry, bool is_active) {
    const std::string_view name = json_text(entry, "name");
    SpeedscopeTitle title;
    if (is_ours_) {
      title = parse_speedscope_title(name);
    } else {
      title.thread = name;
    }
    const Scale scale = TRY(choose_column(title, json_text(entry, "unit")));
    Profile& profile = builder_.profile();
    if (is_active) profile.default_value_type = profile.value_types[scale.column].type;
    if (title.is_sum) return {};  // its samples come again, thread by thread
    const std::uint32_t thread = thread_of(title);
    const std::string_view type = json_text(entry, "type");
    if (type == "sampled") return read_samples(entry, thread, scale);
    if (type == "evented") return read_events(entry, thread, scale);
    return bad_speedscope("a profile is neither sampled nor evented");
  }

  // Our own entries name their column; of others only the unit is known, and times become nanoseconds.
  Result<Scale> choose_column(const SpeedscopeTitle& title, std::string_view unit) {
    const std::optional<std::int64_t> nanoseconds = nanoseconds_per(unit);
    std::string_view type = nanoseconds ? "time" : unit == "bytes" ? "space" : "samples";
    std::string_view model_unit = nanoseconds ? "nanoseconds" : unit == "bytes" ? "bytes" : "count";
    double factor = nanoseconds ? static_cast<double>(*nanoseconds) : 1;
    if (!title.column.empty()) {
      type = title.column;
      if (nanoseconds) model_unit = unit;
      factor = 1;
    }
    const std::optional<std::size_t> column = find_or_add_column(builder_, type, model_unit);
    if (!column) return bad_speedscope("it has too many kinds of values");
    return Scale{*column, factor};
  }

  // Entries that differ only in their column are one thread.
  std::uint32_t thread_of(const SpeedscopeTitle& title) {
    SpeedscopeTitle key = title;
    key.column.clear();
    const std::string text = speedscope_title(key);
    const auto [entry, is_new] = threads_.try_emplace(text, static_cast<std::uint32_t>(threads_.size()));
    if (is_new) {
      merger_.label_thread(entry->second,
                           thread_labels(builder_, title.thread, title.tid, title.process, title.pid));
    }
    return entry->second;
  }

  Result<std::uint32_t> location_of(const json::value& frame) const {
    const std::optional<std::int64_t> index = json_integer(frame);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= locations_.size())
      return bad_speedscope("a stack uses a frame that does not exist");
    return locations_[static_cast<std::size_t>(*index)];
  }

  Result<void> add(std::uint32_t thread, std::span<const std::uint32_t> leaf_first, const Scale& scale,
                   double weight) {
    if (!merger_.add(thread, leaf_first, scale.column, rounded(weight * scale.factor)))
      return bad_speedscope("too large");
    return {};
  }

  Result<void> read_samples(const json::object& entry, std::uint32_t thread, const Scale& scale) {
    const json::array* samples = json_array(entry, "samples");
    const json::array* weights = json_array(entry, "weights");
    if (samples == nullptr || weights == nullptr || samples->size() != weights->size())
      return bad_speedscope("a profile does not have a weight for each sample");
    std::vector<std::uint32_t> stack;
    for (std::size_t at = 0; at < samples->size(); ++at) {
      const json::array* frames = (*samples)[at].if_array();
      const std::optional<double> weight = json_number((*weights)[at]);
      if (frames == nullptr || !weight)
        return bad_speedscope("a sample is not a list of frames with a weight");
      stack.clear();
      for (auto frame = frames->rbegin(); frame != frames->rend(); ++frame) {
        stack.push_back(TRY(location_of(*frame)));
      }
      TRY(add(thread, stack, scale, *weight));
    }
    return {};
  }

  // Between two events the stack is what is open.
  Result<void> read_events(const json::object& entry, std::uint32_t thread, const Scale& scale) {
    const json::array* events = json_array(entry, "events");
    if (events == nullptr) return bad_speedscope("a profile has no events");
    std::vector<std::uint32_t> open, leaf_first;
    double before = json_number(entry, "startValue").value_or(0);
    for (const json::value& value : *events) {
      const json::object* event = value.if_object();
      const std::optional<double> at = event != nullptr ? json_number(*event, "at") : std::nullopt;
      const json::value* frame = event != nullptr ? event->if_contains("frame") : nullptr;
      if (!at || frame == nullptr || *at < before) return bad_speedscope("events are out of order");
      if (!open.empty() && *at > before) {
        leaf_first.assign(open.rbegin(), open.rend());
        TRY(add(thread, leaf_first, scale, *at - before));
      }
      before = *at;
      const std::uint32_t location = TRY(location_of(*frame));
      TRY(follow(json_text(*event, "type"), location, open));
    }
    return open.empty() ? Result<void>() : bad_speedscope("events are not balanced");
  }

  static Result<void> follow(std::string_view type, std::uint32_t location,
                             std::vector<std::uint32_t>& open) {
    if (type == "O") {
      open.push_back(location);
    } else if (type == "C" && !open.empty() && open.back() == location) {
      open.pop_back();
    } else {
      return bad_speedscope("events are not balanced");
    }
    return {};
  }

  const json::object& root_;
  MemoryBudget budget_;
  ProfileBuilder builder_;
  SampleMerger merger_;
  bool is_ours_;
  std::vector<std::uint32_t> locations_;  // by frame
  absl::flat_hash_map<std::string, std::uint32_t> threads_;
};

}  // namespace

Result<Profile> decode_speedscope(std::string_view text, const DecodeLimits& limits) {
  const JsonDocument document = TRY(JsonDocument::parse(text, limits.memory_bytes));
  return SpeedscopeDecoder(document.root(), limits.memory_bytes).decode();
}

}  // namespace ddprof
