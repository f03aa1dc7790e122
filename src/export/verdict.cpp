#include "export/verdict.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "export/retry_after.hpp"

namespace ddprof {

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

// Up to its query, which may hold what is nobody's business.
std::string destination_of(std::string_view location) {
  constexpr std::size_t kMostShown = 200;
  if (location.empty()) return "";
  return ", redirected to " + harmless(location.substr(0, location.find('?')), kMostShown);
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
  return {is_closed ? Verdict::Kind::closed : Verdict::Kind::later, 0, std::move(error), {}, {}};
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

std::optional<Error> objection_of(const HttpPostAnswer& answer, const Peer& peer) {
  const std::string objection = peer.objection == nullptr ? "" : peer.objection(answer.body);
  if (objection.empty()) return std::nullopt;
  return with_hint(make_error(ErrorCode::failed, "post to {}: answered {}{}", peer.place, answer.status,
                              first_words(objection)),
                   peer.cure(answer.status));
}

}  // namespace

Verdict judge(const Result<HttpPostAnswer>& answer, const Peer& peer, Nanoseconds now) {
  using Kind = Verdict::Kind;
  if (!answer) return judge_error(answer.error(), peer);
  const Kind kind = kind_of(*answer, peer);
  if (kind == Kind::taken)
    return {
        .status = answer->status, .error = {}, .retry_after = {}, .objection = objection_of(*answer, peer)};
  Error error = make_error(ErrorCode::failed, "post to {}: answered {}{}{}", peer.place, answer->status,
                           destination_of(answer->location), first_words(answer->body));
  return {kind,
          answer->status,
          with_hint(std::move(error), cure_of(*answer, peer)),
          parse_retry_after(answer->retry_after, now),
          {}};
}

}  // namespace ddprof
