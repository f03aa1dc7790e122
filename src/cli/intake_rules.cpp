#include "cli/intake_rules.hpp"

#include <algorithm>
#include <utility>

#include "cli/option_table.hpp"
#include "export/addresses.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kShortestKey = 32;
constexpr const char* kKeyCure = "DD_API_KEY=KEY, or leave out --agentless and send through an agent";

// Never shows the key.
Result<void> check_key(const std::string& key) {
  if (key.empty())
    return with_hint(make_error(ErrorCode::invalid_argument, "--agentless: needs an API key"), kKeyCure);
  if (key.size() < kShortestKey)
    return with_hint(make_error(ErrorCode::invalid_argument,
                                "--agentless: an API key of {} characters; those of Datadog have {}",
                                key.size(), kShortestKey),
                     kKeyCure);
  const bool is_plain = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (is_plain) return {};
  return with_hint(
      make_error(ErrorCode::invalid_argument, "--agentless: the API key has characters that no key has"),
      kKeyCure);
}

Result<void> check_intake_settings(const Options& options) {
  TRY(check_key(options.api_key));
  auto address = intake_address(options.url, options.site);
  if (address) return {};
  return with_hint(make_error(ErrorCode::invalid_argument, "--agentless: {}", address.error().message),
                   options.url.empty() ? "--site datadoghq.eu, DD_SITE" : "--url https://…, or --site alone");
}

}  // namespace

Result<void> check_intake(Options& options) {
  if (!options.agentless) return {};
  std::string agent;
  if (origin_of(options, "url").kind == Origin::Kind::environment) agent = std::exchange(options.url, {});
  auto checked = check_intake_settings(options);
  const Origin& origin = origin_of(options, "agentless");
  if (checked || origin.kind == Origin::Kind::command_line) return checked;
  options.notices.push_back(fmt::format("{} is left alone: {}; try: {}", origin.detail,
                                        checked.error().message, checked.error().hint));
  options.agentless = false;
  if (!agent.empty()) options.url = std::move(agent);
  return {};
}

}  // namespace ddprof
