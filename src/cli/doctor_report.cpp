#include "cli/doctor_report.hpp"

#include <algorithm>
#include <string_view>

#include "base/result.hpp"
#include "cli/commands.hpp"
#include "cli/json_writer.hpp"
#include "cli/option_table.hpp"
#include "cli/terminal.hpp"
#include "doctor/doctor.hpp"
#include "encode/display_text.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kStateColumn = 9;
constexpr std::size_t kNameColumn = 15;
constexpr std::size_t kIndent = kStateColumn + kNameColumn;
constexpr std::size_t kTitleColumn = 26;

// Paths and answers of servers are foreign text.
std::string block(std::string_view text, std::size_t indent, std::size_t width) {
  return wrapped(printable(text), indent, std::max(width, indent + 20)) + '\n';
}

// In one line, however long: commands are copied.
std::string hint_line(std::string_view label, std::string_view text, std::size_t indent) {
  if (text.empty()) return {};
  return fmt::format("{:{}}{}: {}\n", "", indent, label, printable(text));
}

std::string finding_text(const Finding& finding, bool is_in_container, std::size_t width) {
  std::string text =
      fmt::format("{:<{}}{:<{}}", state_name(finding.state), kStateColumn, finding.name, kNameColumn);
  text += block(fmt::format("{}: {}", finding.fact, finding.meaning), kIndent, width);
  text += hint_line("try", finding.hint.command, kIndent);
  if (!is_in_container) return text;
  text += hint_line("docker", finding.hint.docker, kIndent);
  text += hint_line("kubernetes", finding.hint.kubernetes, kIndent);
  return text;
}

std::string_view answer(CheckState state) {
  if (state == CheckState::ok) return "yes";
  return state == CheckState::limited ? "partly" : "no";
}

std::string ability_text(const Ability& ability, std::size_t width) {
  constexpr std::size_t kAbilityIndent = 2 + kStateColumn + kTitleColumn;
  std::string text =
      fmt::format("  {:<{}}{:<{}}", answer(ability.state), kStateColumn, ability.title, kTitleColumn);
  text += block(ability.meaning, kAbilityIndent, width);
  return text + hint_line("try", ability.hint.command, kAbilityIndent);
}

void write_hint(JsonWriter& json, const Hint& hint) {
  json.key("cure");
  json.begin_object();
  json.member("command", hint.command);
  json.member("docker", hint.docker);
  json.member("kubernetes", hint.kubernetes);
  json.end_object();
}

void write_finding(JsonWriter& json, const Finding& finding) {
  json.begin_object();
  json.member("name", finding.name);
  json.member("state", state_name(finding.state));
  json.member("fact", finding.fact);
  json.member("meaning", finding.meaning);
  write_hint(json, finding.hint);
  json.end_object();
}

void write_ability(JsonWriter& json, const Ability& ability) {
  json.begin_object();
  json.member("name", ability.name);
  json.member("state", state_name(ability.state));
  json.member("meaning", ability.meaning);
  write_hint(json, ability.hint);
  json.end_object();
}

}  // namespace

std::string doctor_text(const Diagnosis& diagnosis, std::size_t width) {
  std::string text;
  for (const Finding& finding : diagnosis.findings)
    text += finding_text(finding, diagnosis.is_in_container, width);
  text += "\nWhat can be profiled here:\n";
  for (const Ability& ability : diagnosis.abilities) text += ability_text(ability, width);
  return text;
}

std::string doctor_json(const Diagnosis& diagnosis) {
  JsonWriter json;
  json.begin_object();
  json.key("can_profile");
  json.flag(diagnosis.can_profile);
  json.key("in_container");
  json.flag(diagnosis.is_in_container);
  json.key("abilities");
  json.begin_array();
  for (const Ability& ability : diagnosis.abilities) write_ability(json, ability);
  json.end_array();
  json.key("findings");
  json.begin_array();
  for (const Finding& finding : diagnosis.findings) write_finding(json, finding);
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

int doctor(const Options& options) {
  const auto is_named = [&](const char* name) {
    return origin_of(options, name).kind != Origin::Kind::default_value;
  };
  const Diagnosis diagnosis = examine({.url = options.url,
                                       .host = options.host,
                                       .port = options.port,
                                       .is_named = is_named("url") || is_named("host") || is_named("port")});
  const int status =
      print_output(options.json ? doctor_json(diagnosis) : doctor_text(diagnosis, terminal_width()));
  return diagnosis.can_profile ? status : 1;
}

}  // namespace ddprof
