#include "export/answer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ddprof {

namespace {

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<unsigned> month_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto* const found = std::find(kMonths.begin(), kMonths.end(), name);
  if (found == kMonths.end()) return std::nullopt;
  return static_cast<unsigned>(found - kMonths.begin()) + 1;
}

// The name of the day is not looked at.
std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) {
  constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";
  if (text.size() != kForm.size() || text.substr(3, 2) != ", " || text[19] != ':' || text[22] != ':' ||
      text.substr(25) != " GMT")
    return std::nullopt;
  const auto day = whole_number(text.substr(5, 2)), year = whole_number(text.substr(12, 4)),
             hour = whole_number(text.substr(17, 2)), minute = whole_number(text.substr(20, 2)),
             second = whole_number(text.substr(23, 2));
  const auto month = month_of(text.substr(8, 3));
  if (!day || !month || !year || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

}  // namespace

std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, Nanoseconds unix_now) {
  if (const auto seconds = whole_number(text)) return std::chrono::seconds(*seconds);
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  const auto left = date->time_since_epoch() - std::chrono::floor<std::chrono::seconds>(unix_now);
  return std::max(left, std::chrono::seconds(0));
}

namespace {

// Without what could move a cursor: controls, and bytes that some terminals read as such.
std::string harmless(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

// The first line of what a server says.
std::string first_words(std::string_view body) {
  constexpr std::size_t kMostShown = 100;
  const std::string words = harmless(body.substr(0, body.find_first_of("\r\n")), kMostShown);
  return words.empty() ? "" : ": " + words;
}

// Up to its query, which may hold secrets.
std::string destination_of(std::string_view location) {
  constexpr std::size_t kMostShown = 200;
  if (location.empty()) return "";
  return ", redirected to " + harmless(location.substr(0, location.find('?')), kMostShown);
}

// nginx and Go say so with a status of 400, to a request that they have not read.
bool wants_https(const HttpPostAnswer& answer) {
  return answer.status == 400 && answer.body.find("HTTP request") != std::string::npos &&
         answer.body.find("HTTPS ") != std::string::npos;
}

std::string hint_of(const HttpPostAnswer& answer, const Peer& peer) {
  if (answer.status == 407)
    return "user and password of the proxy: http_proxy=http://user:password@host:port";
  return wants_https(answer) ? "https:// in place of http://" : peer.hint(answer.status);
}

Answer answer_to_error(Error error, const Peer& peer) {
  // It did not get as far as the peer if even the request makes no sense.
  const bool is_closed =
      error.code == ErrorCode::invalid_argument || error.code == ErrorCode::permission_denied;
  if (error.hint.empty()) error.hint = peer.hint(0);
  return {is_closed ? Answer::Kind::closed : Answer::Kind::later, 0, std::move(error), {}, {}};
}

Answer::Kind kind_of(const HttpPostAnswer& answer, const Peer& peer) {
  const unsigned status = answer.status;
  if (status >= 200 && status < 300) return Answer::Kind::taken;
  if (peer.may_pass(status)) return Answer::Kind::later;
  // A server that answers so has not inspected the request.
  const bool is_closed = status < 400 || status == 401 || status == 403 || status == 404 || status == 405 ||
                         status == 407 || status == 511 || wants_https(answer);
  return is_closed ? Answer::Kind::closed : Answer::Kind::refused;
}

std::optional<Error> objection_of(const HttpPostAnswer& answer, const Peer& peer) {
  const std::string objection = peer.objection == nullptr ? "" : peer.objection(answer.body);
  if (objection.empty()) return std::nullopt;
  return with_hint(make_error(ErrorCode::failed, "post to {}: answered {}{}", peer.place, answer.status,
                              first_words(objection)),
                   peer.hint(answer.status));
}

}  // namespace

Answer judge(const Result<HttpPostAnswer>& answer, const Peer& peer, Nanoseconds now) {
  using Kind = Answer::Kind;
  if (!answer) return answer_to_error(answer.error(), peer);
  const Kind kind = kind_of(*answer, peer);
  if (kind == Kind::taken)
    return {
        .status = answer->status, .error = {}, .retry_after = {}, .objection = objection_of(*answer, peer)};
  Error error = make_error(ErrorCode::failed, "post to {}: answered {}{}{}", peer.place, answer->status,
                           destination_of(answer->location), first_words(answer->body));
  return {kind,
          answer->status,
          with_hint(std::move(error), hint_of(*answer, peer)),
          parse_retry_after(answer->retry_after, now),
          {}};
}

}  // namespace ddprof
