#include "export/verdict.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace ddprof {

namespace {

// The first line of what a server says, without what could move a cursor.
std::string first_words(std::string_view body) {
  constexpr std::size_t kMaxShown = 100;
  std::string words(body.substr(0, std::min(body.find_first_of("\r\n"), kMaxShown)));
  std::replace_if(
      words.begin(), words.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return words.empty() ? "" : ": " + words;
}

// A number of seconds; dates, which nobody sends here, are not read.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

// nginx and Go say so with a status of 400, to a parcel that they have not read.
bool wants_https(const HttpPostAnswer& answer) {
  return answer.status == 400 && answer.body.find("HTTP request") != std::string::npos &&
         answer.body.find("HTTPS ") != std::string::npos;
}

std::string cure_of(const HttpPostAnswer& answer, const Peer& peer) {
  if (answer.status == 407)
    return "user and password of the proxy: http_proxy=http://user:password@host:port";
  return wants_https(answer) ? "https:// in place of http://" : peer.cure(answer.status);
}

Verdict judge_error(Error error, const Peer& peer) {
  // It did not get as far as the peer if even the request makes no sense.
  const bool is_closed =
      error.code == ErrorCode::invalid_argument || error.code == ErrorCode::permission_denied;
  if (error.hint.empty()) error.hint = peer.cure(0);
  return {is_closed ? Verdict::Kind::closed : Verdict::Kind::later, std::move(error), {}};
}

Verdict::Kind kind_of(const HttpPostAnswer& answer, const Peer& peer) {
  const unsigned status = answer.status;
  if (status >= 200 && status < 300) return Verdict::Kind::taken;
  if (peer.may_pass(status)) return Verdict::Kind::later;
  // Whoever answers so has not looked at the parcel.
  const bool is_closed = status < 400 || status == 401 || status == 403 || status == 404 || status == 405 ||
                         status == 407 || status == 511 || wants_https(answer);
  return is_closed ? Verdict::Kind::closed : Verdict::Kind::refused;
}

}  // namespace

Verdict judge(const Result<HttpPostAnswer>& answer, const Peer& peer) {
  using Kind = Verdict::Kind;
  if (!answer) return judge_error(answer.error(), peer);
  const Kind kind = kind_of(*answer, peer);
  if (kind == Kind::taken) return {};
  const std::string there =
      answer->location.empty() ? "" : fmt::format(", redirected to {}", answer->location.substr(0, 200));
  Error error = make_error(ErrorCode::failed, "post to {}: answered {}{}{}", peer.place, answer->status,
                           there, first_words(answer->body));
  return {kind, with_hint(std::move(error), cure_of(*answer, peer)), parse_retry_after(answer->retry_after)};
}

}  // namespace ddprof
