#include "export/datadog_answer.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace ddprof {

namespace {

constexpr std::string_view kLookAtTheAgent = "look at the agent: its log, its API key, and: ddprof doctor";

// The first line of what a server says, without what could move a cursor.
std::string first_words(std::string_view body) {
  constexpr std::size_t kMaxShown = 100;
  std::string words(body.substr(0, std::min(body.find_first_of("\r\n"), kMaxShown)));
  std::replace_if(
      words.begin(), words.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return words.empty() ? "" : ": " + words;
}

std::string cure_of(unsigned status) {
  if (status >= 300 && status < 400) return "name the right address: --url, DD_TRACE_AGENT_URL";
  switch (status) {
    case 401:
    case 403:
      return "give the agent an API key that is valid";
    case 404:
      return "a Datadog agent takes profiles from version 7.20 on; is it one? ddprof doctor";
    case 413:
      return "send smaller profiles: a shorter --upload-period, or --no-timeline";
    default:
      return std::string(kLookAtTheAgent);
  }
}

// A number of seconds; dates, which nobody sends here, are not read.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

DatadogVerdict judge(const Result<HttpPostAnswer>& answer, const std::string& place) {
  if (!answer)
    return {with_hint(answer.error(), "start the agent, or name it: --url, DD_TRACE_AGENT_URL"), true, {}};
  const unsigned status = answer->status;
  if (status >= 200 && status < 300) return {};
  const std::string there =
      answer->location.empty() ? "" : fmt::format(", redirected to {}", answer->location.substr(0, 200));
  Error refusal = make_error(ErrorCode::failed, "post to {}: answered {}{}{}", place, status, there,
                             first_words(answer->body));
  const bool may_pass = status == 408 || status == 429 || status >= 500;
  return {with_hint(std::move(refusal), cure_of(status)), may_pass, parse_retry_after(answer->retry_after)};
}

}  // namespace ddprof
