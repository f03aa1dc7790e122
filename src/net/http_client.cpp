#include "net/http_client.hpp"

#include <optional>
#include <utility>

#include "net/http_exchange.hpp"

namespace ddprof {

namespace {

using boost::beast::http::field;
using std::chrono::steady_clock;

std::string request_text(const Url& url, const HttpExchange& exchange, const HttpOptions& options) {
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
      "Connection: close\r\n{}\r\n",
      exchange.target(url), url.authority(), options.user_agent, exchange.proxy_line());
}

bool is_redirection(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// An answer, or where to ask instead.
struct Outcome {
  HttpAnswer answer;
  std::optional<Url> next;
};

Result<Outcome> ask_once(const Url& url, const HttpOptions& options, Deadline end, const HttpSink& sink) {
  HttpExchange exchange(options, end);
  TRY(exchange.connect(url));
  const std::string request = request_text(url, exchange, options);
  TRY(exchange.send(std::as_bytes(std::span(request))));
  TRY(exchange.receive_header());
  Outcome outcome{{exchange.status(), 0}, {}};
  if (is_redirection(exchange.status())) {
    outcome.next = TRY(url.follow(exchange.field(field::location)));
    if (url.is_tls && !outcome.next->is_tls)
      return make_error(ErrorCode::failed, "redirected to {}, which is not encrypted", outcome.next->text());
  } else if (exchange.status() == 200) {
    const std::string_view encoding = exchange.field(field::content_encoding);
    if (!encoding.empty() && encoding != "identity")
      return make_error(ErrorCode::corrupt, "encoded as {}, which was not asked for", encoding);
    outcome.answer.body_bytes = TRY(exchange.receive_body(sink));
  }
  return outcome;
}

}  // namespace

Result<HttpAnswer> http_get(std::string_view url, const HttpOptions& options, const HttpSink& sink) {
  Url here = TRY(Url::parse(url));
  const Deadline end = steady_clock::now() + options.total_timeout;
  for (int i = 0; i <= options.max_redirects; ++i) {
    auto outcome = ask_once(here, options, end, sink);
    if (!outcome) {
      Error error = std::move(outcome).error();
      error.message = fmt::format("get {}: {}", here.text(), error.message);
      return error;
    }
    if (!outcome->next) return outcome->answer;
    here = std::move(*outcome->next);
  }
  return make_error(ErrorCode::failed, "get {}: more than {} redirections", url, options.max_redirects);
}

}  // namespace ddprof
