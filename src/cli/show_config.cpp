#include "cli/show_config.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cli/option_rules.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"
#include "cli/user_folder.hpp"
#include "collect/engines/engine_table.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxValueWidth = 40;  // longer values push their own line, not the whole column

struct Line {
  std::string name, value, origin;
};

// Enough of a key to tell two apart, nothing to use.
std::string masked(std::string_view secret) {
  constexpr std::size_t kShown = 4;
  if (secret.empty()) return {};
  if (secret.size() < 4 * kShown) return "****";
  return fmt::format("****{}", secret.substr(secret.size() - kShown));
}

std::string describe_event(const EventSpec& event) {
  if (event.frequency != 0) return fmt::format("{} at {} Hz", event.name, event.frequency);
  if (event.period == 1) return fmt::format("{}, every one", event.name);
  return fmt::format("{} every {} {}", event.name, event.period,
                     event.unit == "count" ? "events" : event.unit);
}

// In http://user:password@host/path?token, what is before the @ or after the ? is a secret.
std::string without_secrets(std::string text) {
  if (const std::size_t query = text.find('?'); query != std::string::npos)
    text.replace(query + 1, text.size(), "****");
  const std::size_t scheme = text.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t at = text.substr(0, text.find('/', begin)).rfind('@');
  return at == std::string::npos || at < begin ? text : text.replace(begin, at - begin, "****");
}

std::string value_of(const Options& options, const OptionRow& row) {
  std::string text = option_text(options, row);
  if (row.is_secret) return masked(text);
  return row.value == "URL" ? without_secrets(std::move(text)) : text;
}

// A default that is no value is told in words.
std::string origin_text(const Options& options, const OptionRow& row, bool has_value) {
  const Origin& origin = origin_of(options, row.name);
  std::string text = describe(origin);
  const bool is_set = origin.kind != Origin::Kind::default_value;
  if (!is_set && !has_value && origin.detail.empty() && !row.default_note.empty())
    text += fmt::format(": {}", row.default_note);
  if (!row.has_effect) text += fmt::format(" ({})", kNoEffectNote);
  return text;
}

std::string program_text(const Options& options) {
  if (!options.program.empty()) return fmt::format("{}", fmt::join(options.program, " "));
  if (is_attaching(options)) return attach_text(options);
  return options.global ? "every process" : "-";
}

// As the engine chooses it; 0: it cannot.
std::uint32_t automatic_stack_bytes(const Options& options) {
  const auto chosen = choose_engine(options.engine);
  if (!chosen) return 0;
  const auto bytes = chosen->engine->automatic_stack_bytes(options.events);
  return bytes ? *bytes : 0;
}

std::vector<Line> make_lines(const Options& options) {
  std::vector<Line> lines;
  lines.push_back({"(target)", program_text(options), ""});
  for (const EventSpec& event : options.events) lines.push_back({"(samples)", describe_event(event), ""});
  for (const OptionRow& row : option_table()) {
    if (std::holds_alternative<std::monostate>(row.slot) || !belongs_to(row, Command::wrap)) continue;
    const bool is_default = origin_of(options, row.name).kind == Origin::Kind::default_value;
    if (row.level == OptionLevel::hidden && is_default) continue;
    std::string value = value_of(options, row);
    std::string origin = origin_text(options, row, !value.empty());
    lines.push_back({std::string(row.name), value.empty() ? "-" : std::move(value), std::move(origin)});
  }
  return lines;
}

}  // namespace

std::string describe(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::command_line:
      return "command line";
    case Origin::Kind::environment:
    case Origin::Kind::file:
      return origin.detail;
    case Origin::Kind::default_value:
      break;
  }
  return origin.detail.empty() ? "default" : fmt::format("default: {}", origin.detail);
}

Options with_automatic_values(Options options) {
  const auto origin = [&](std::string_view name) -> Origin& { return options.origins[*find_option(name)]; };
  const auto clock = std::find_if(options.events.begin(), options.events.end(), [](const EventSpec& event) {
    return event.is_clock && event.frequency != 0;
  });
  if (!options.frequency && clock != options.events.end()) {
    options.frequency = static_cast<std::int64_t>(clock->frequency);
    if (!options.event_texts.empty()) origin("frequency").detail = "of the event";
  }
  if (const std::uint32_t bytes = automatic_stack_bytes(options); bytes != 0 && !options.stack_sample_bytes) {
    options.stack_sample_bytes = bytes;
    origin("stack-sample-size").detail = "by the rate and the room in the rings";
  }
  const std::string state = user_folder("XDG_STATE_HOME", ".local/state");
  if (options.spool_dir.empty() && !state.empty()) {
    options.spool_dir = state + "/spool";
    origin("spool-dir").detail = "the user's state directory";
  }
  const char* const statsd = std::getenv("DD_DOGSTATSD_URL");
  if (options.internal_stats.empty() && statsd != nullptr && *statsd != 0) {
    options.internal_stats = statsd;
    origin("internal-stats") = {Origin::Kind::environment, "DD_DOGSTATSD_URL"};
  }
  return options;
}

std::string show_config(const Options& options) {
  const std::vector<Line> lines = make_lines(options);
  std::size_t name_width = 0, value_width = 0;
  for (const Line& line : lines) {
    name_width = std::max(name_width, line.name.size());
    if (!line.origin.empty())
      value_width = std::max(value_width, std::min(line.value.size(), kMaxValueWidth));
  }
  std::string text;
  for (const Line& line : lines) {
    if (line.origin.empty()) {
      text += fmt::format("{:<{}}  {}\n", line.name, name_width, line.value);
    } else {
      text +=
          fmt::format("{:<{}}  {:<{}}  {}\n", line.name, name_width, line.value, value_width, line.origin);
    }
  }
  return text;
}

}  // namespace ddprof
