#include "collect/event_spec.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.hpp"
#include "collect/event_table.hpp"

namespace ddprof {

// The grammar of `-e`, which scripts of the original ddprof already use:
//   events := event (';' event)*      event := (NAME | key '=' value) separated by spaces or commas
// Every key has aliases; a NAME without '=' is short for event=NAME. What the values mean is event_spec.cpp's
// part.

enum class EventKey : std::uint8_t {
  frequency,
  period,
  mode,
  scale,
  label,
  event,
  group,
  id,
  argument,
  raw_offset,
  raw_size,
  register_number,
  stack_size,
};
inline constexpr std::size_t kEventKeyCount = 13;

// One event as written: the values by key.
struct EventFields {
  std::array<std::optional<std::string_view>, kEventKeyCount> values;

  std::optional<std::string_view>& operator[](EventKey key) { return values[static_cast<std::size_t>(key)]; }
  const std::optional<std::string_view>& operator[](EventKey key) const {
    return values[static_cast<std::size_t>(key)];
  }
};

// Cuts one event into its fields; fails on unknown and repeated keys.
Result<EventFields> split_event(std::string_view text);

// The text without spaces and commas at both ends.
std::string_view trim_event(std::string_view text);

template <typename... Args>
[[nodiscard]] Error event_error(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::invalid_argument, "event {}: {}", event,
                    fmt::format(format, std::forward<Args>(args)...));
}

namespace {

using Key = EventKey;

struct KeyName {
  std::string_view name;
  Key key;
};

constexpr auto kKeyNames = std::to_array<KeyName>({
    {"frequency", Key::frequency},
    {"freq", Key::frequency},
    {"f", Key::frequency},
    {"period", Key::period},
    {"per", Key::period},
    {"p", Key::period},
    {"mode", Key::mode},
    {"m", Key::mode},
    {"value_scale", Key::scale},
    {"scale", Key::scale},
    {"s", Key::scale},
    {"label", Key::label},
    {"l", Key::label},
    {"event", Key::event},
    {"eventname", Key::event},
    {"ev", Key::event},
    {"e", Key::event},
    {"group", Key::group},
    {"groupname", Key::group},
    {"gr", Key::group},
    {"g", Key::group},
    {"id", Key::id},
    {"i", Key::id},
    {"arg_num", Key::argument},
    {"argno", Key::argument},
    {"n", Key::argument},
    {"raw_offset", Key::raw_offset},
    {"rawoff", Key::raw_offset},
    {"o", Key::raw_offset},
    {"raw_size", Key::raw_size},
    {"rawsz", Key::raw_size},
    {"z", Key::raw_size},
    {"register", Key::register_number},
    {"regno", Key::register_number},
    {"r", Key::register_number},
    {"stack_sample_size", Key::stack_size},
    {"stcksz", Key::stack_size},
    {"st", Key::stack_size},
});

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }
bool is_separator(char letter) { return is_space(letter) || letter == ','; }

Error unknown_key(std::string_view event, std::string_view key) {
  std::vector<std::string_view> names;
  for (const KeyName& entry : kKeyNames) {
    if (entry.name.size() > 2) names.push_back(entry.name);
  }
  return with_hint(event_error(event, "unknown key {}{}", key, did_you_mean(key, names)), "ddprof -e help");
}

// Takes words and key=value pairs from the front of one event's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() {
    skip(is_separator);
    return rest_.empty();
  }

  std::string_view word() {
    const auto end =
        std::find_if(rest_.begin(), rest_.end(), [](char c) { return is_separator(c) || c == '='; });
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }

  // True, and past it, when an equals sign comes next; spaces around it are fine.
  bool take_equals() {
    const std::string_view before = rest_;
    skip(is_space);
    if (rest_.empty() || rest_.front() != '=') {
      rest_ = before;
      return false;
    }
    rest_.remove_prefix(1);
    skip(is_space);
    return true;
  }

 private:
  void skip(bool (*matches)(char)) {
    while (!rest_.empty() && matches(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

std::optional<Key> find_key(std::string_view name) {
  const auto* found =
      std::find_if(kKeyNames.begin(), kKeyNames.end(), [&](const KeyName& k) { return k.name == name; });
  if (found == kKeyNames.end()) return std::nullopt;
  return found->key;
}

}  // namespace

std::string_view trim_event(std::string_view text) {
  while (!text.empty() && is_separator(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_separator(text.back())) text.remove_suffix(1);
  return text;
}

Result<EventFields> split_event(std::string_view text) {
  EventFields fields;
  Scanner scanner(text);
  while (!scanner.at_end()) {
    const std::string_view name = scanner.word();
    Key key = Key::event;
    std::string_view value = name;
    if (scanner.take_equals()) {
      const std::optional<Key> found = find_key(name);
      if (!found) return unknown_key(text, name);
      key = *found;
      value = scanner.word();
      if (value.empty()) return event_error(text, "{} has no value", name);
    }
    if (fields[key])
      return event_error(text, "\"{}\" and \"{}\" both say the same thing", *fields[key], value);
    fields[key] = value;
  }
  return fields;
}

namespace {

using Key = EventKey;
using Fields = EventFields;

constexpr std::uint64_t kMaxFrequency =
    100000;  // the kernel's own default ceiling, perf_event_max_sample_rate
constexpr std::uint64_t kMaxPeriod = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxStackBytes = 65528;  // a perf record's size is 16 bits
constexpr std::uint64_t kMaxArgument = 6;        // arguments that the ABI passes in registers
constexpr std::uint64_t kMaxRegister = 23;       // PERF_REG_X86_64_MAX - 1
constexpr std::uint64_t kMaxRawOffset = 65535;

Error unknown_event(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownEvent& event : known_events()) {
    names.push_back(event.name);
    if (!event.alias.empty()) names.push_back(event.alias);
  }
  return with_hint(event_error(name, "unknown name{}", did_you_mean(name, names)),
                   "ddprof -e help; a tracepoint is written group:event");
}

struct Range {
  std::uint64_t low, high;
};

Result<std::uint64_t> parse_number(std::string_view event, std::string_view what, std::string_view text,
                                   Range range) {
  std::string_view digits = text;
  const bool is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (is_hexadecimal) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, value, is_hexadecimal ? 16 : 10);
  if (failure != std::errc() || stop != end || value < range.low || value > range.high) {
    return event_error(event, "{} {}: must be a whole number from {} to {}", what, text, range.low,
                       range.high);
  }
  return value;
}

Result<std::uint32_t> parse_small(std::string_view event, std::string_view what, std::string_view text,
                                  Range range) {
  return static_cast<std::uint32_t>(TRY(parse_number(event, what, text, range)));
}

EventSpec from_table(const KnownEvent& known) {
  EventSpec spec;
  spec.name = known.name;
  spec.label = known.label;
  spec.unit = known.unit;
  spec.kind = known.kind;
  spec.config = known.config;
  spec.is_clock = known.unit == "nanoseconds";
  spec.frequency = known.frequency;
  spec.period = known.period;
  return spec;
}

EventSpec tracepoint(std::string_view group, std::string_view name) {
  EventSpec spec;
  spec.name = fmt::format("{}:{}", group, name);
  spec.label = spec.name;
  spec.kind = EventSpec::Kind::tracepoint;
  spec.tracepoint_group = group;
  spec.tracepoint_name = name;
  spec.period = 1;
  return spec;
}

// Names become parts of a path under tracefs.
bool is_tracepoint_word(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Result<EventSpec> identify(std::string_view text, const Fields& fields) {
  if (!fields[Key::event]) return event_error(text, "has no name");
  std::string_view name = *fields[Key::event];
  std::string_view group = fields[Key::group].value_or(std::string_view());
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    if (!group.empty()) return event_error(text, "the group is given twice");
    group = name.substr(0, colon);
    name.remove_prefix(colon + 1);
    if (group.empty()) return event_error(text, "has no group before the colon");
  }
  if (group.empty()) {
    const KnownEvent* known = find_known_event(name);
    if (known == nullptr) return unknown_event(name);
    return from_table(*known);
  }
  if (!is_tracepoint_word(group) || !is_tracepoint_word(name)) {
    return event_error(text, "group and event of a tracepoint are letters, digits, _ and -");
  }
  return tracepoint(group, name);
}

Result<void> set_rate(EventSpec& spec, const Fields& fields) {
  const auto& frequency = fields[Key::frequency];
  const auto& period = fields[Key::period];
  if (frequency && period) {
    return event_error(spec.name, "give a frequency or a period, not both");
  }
  if (frequency) {
    if (spec.kind == EventSpec::Kind::allocation) {
      return event_error(spec.name, "allocations are sampled by bytes: give a period");
    }
    spec.frequency = TRY(parse_number(spec.name, "frequency", *frequency, {1, kMaxFrequency}));
    spec.period = 0;
  }
  if (period) {
    spec.period = TRY(parse_number(spec.name, "period", *period, {1, kMaxPeriod}));
    spec.frequency = 0;
  }
  return {};
}

Result<void> set_raw_field(EventSpec& spec, const Fields& fields) {
  if (!fields[Key::raw_offset]) return event_error(spec.name, "raw_size needs raw_offset");
  if (spec.kind != EventSpec::Kind::tracepoint) {
    return event_error(spec.name, "only tracepoints have a raw record to take the value from");
  }
  spec.value_source = EventSpec::ValueSource::raw_field;
  spec.raw_offset = TRY(parse_small(spec.name, "raw_offset", *fields[Key::raw_offset], {0, kMaxRawOffset}));
  const std::string_view size = fields[Key::raw_size].value_or("8");
  spec.raw_size = TRY(parse_small(spec.name, "raw_size", size, {1, 8}));
  if ((spec.raw_size & (spec.raw_size - 1)) != 0) {
    return event_error(spec.name, "raw_size {}: must be 1, 2, 4 or 8", size);
  }
  return {};
}

Result<void> set_value_source(EventSpec& spec, const Fields& fields) {
  const auto& argument = fields[Key::argument];
  const auto& number = fields[Key::register_number];
  const bool has_raw = fields[Key::raw_offset] || fields[Key::raw_size];
  if (int{argument.has_value()} + int{number.has_value()} + int{has_raw} > 1) {
    return event_error(spec.name, "the value comes from an argument, a register or the raw record: give one");
  }
  if (has_raw) return set_raw_field(spec, fields);
  if (!argument && !number) return {};
  spec.value_source = EventSpec::ValueSource::register_argument;
  spec.argument_is_register_number = number.has_value();
  spec.argument = number ? TRY(parse_small(spec.name, "register", *number, {0, kMaxRegister}))
                         : TRY(parse_small(spec.name, "arg_num", *argument, {1, kMaxArgument}));
  return {};
}

Result<void> set_scale(EventSpec& spec, std::string_view text) {
  double scale = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (failure != std::errc() || stop != text.data() + text.size() || !std::isfinite(scale) || scale <= 0) {
    return event_error(spec.name, "value_scale {}: must be a number above 0", text);
  }
  spec.value_scale = scale;
  return {};
}

// Values are always summed. Allocations that are still alive can be told beside that.
Result<void> set_mode(EventSpec& spec, std::string_view mode) {
  if (mode.find_first_not_of("sla*") != std::string_view::npos) {
    return event_error(spec.name, "mode {}: must be s (sum), l (live) or a (all)", mode);
  }
  if (mode.find('l') != std::string_view::npos && spec.kind != EventSpec::Kind::allocation) {
    return event_error(spec.name, "mode {}: only allocations can be live", mode);
  }
  spec.is_live =
      spec.kind == EventSpec::Kind::allocation && mode.find_first_of("la*") != std::string_view::npos;
  return {};
}

Result<void> set_details(EventSpec& spec, const Fields& fields) {
  if (fields[Key::label]) spec.label = *fields[Key::label];
  if (fields[Key::mode]) TRY(set_mode(spec, *fields[Key::mode]));
  if (fields[Key::scale]) TRY(set_scale(spec, *fields[Key::scale]));
  if (fields[Key::id]) {
    if (spec.kind != EventSpec::Kind::tracepoint)
      return event_error(spec.name, "only tracepoints have an id");
    spec.config = TRY(parse_number(spec.name, "id", *fields[Key::id], {1, 0xffffffff}));
  }
  if (fields[Key::stack_size]) {
    const std::string_view text = *fields[Key::stack_size];
    spec.stack_sample_size = TRY(parse_small(spec.name, "stack_sample_size", text, {8, kMaxStackBytes}));
    if (spec.stack_sample_size % 8 != 0) {
      return event_error(spec.name, "stack_sample_size {}: must be a multiple of 8", text);
    }
  }
  return {};
}

Result<EventSpec> parse_event(std::string_view text) {
  const Fields fields = TRY(split_event(text));
  EventSpec spec = TRY(identify(text, fields));
  TRY(set_rate(spec, fields));
  TRY(set_value_source(spec, fields));
  TRY(set_details(spec, fields));
  return spec;
}

}  // namespace

Result<std::vector<EventSpec>> parse_events(std::string_view text) {
  std::vector<EventSpec> events;
  while (!text.empty()) {
    const std::size_t semicolon = std::min(text.find(';'), text.size());
    const std::string_view event = trim_event(text.substr(0, semicolon));
    text.remove_prefix(std::min(semicolon + 1, text.size()));
    if (!event.empty()) events.push_back(TRY(parse_event(event)));
  }
  if (events.empty()) {
    return with_hint(make_error(ErrorCode::invalid_argument, "event: nothing is named"), "ddprof -e help");
  }
  return events;
}

Result<std::vector<EventSpec>> preset_events(std::string_view preset, bool attaching) {
  if (preset == "cpu_only" || (preset == "default" && attaching)) return std::vector{default_cpu_event()};
  EventSpec allocations = from_table(*find_known_event("sALLOC"));
  allocations.is_live = preset == "alloc_live_heap" || preset == "cpu_live_heap";
  if (preset == "alloc_only" || preset == "alloc_live_heap") return std::vector{allocations};
  if (preset == "default" || preset == "cpu_live_heap") return std::vector{default_cpu_event(), allocations};
  constexpr std::array<std::string_view, 5> kPresets = {"default", "cpu_only", "alloc_only",
                                                        "alloc_live_heap", "cpu_live_heap"};
  return make_error(ErrorCode::invalid_argument, "preset {}: must be one of {}{}", preset,
                    fmt::join(kPresets, ", "), did_you_mean(preset, kPresets));
}

EventSpec default_cpu_event() { return from_table(*find_known_event("sCPU")); }

}  // namespace ddprof
