#include "net/http_post.hpp"

#include <algorithm>

#include "net/http_exchange.hpp"

namespace ddprof {

namespace {

using boost::beast::http::field;

// Whatever comes from a configuration must not become a header of its own.
bool is_header_text(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

Result<std::string> headers_of(const HttpPost& post) {
  std::string head;
  auto add = [&head](std::string_view name, std::string_view value) -> Result<void> {
    if (!is_header_text(name) || !is_header_text(value))
      return make_error(ErrorCode::invalid_argument, "header {}: not one line of text", name.substr(0, 40));
    head += fmt::format("{}: {}\r\n", name, value);
    return {};
  };
  TRY(add("Content-Type", post.content_type));
  for (const auto& [name, value] : post.headers) TRY(add(name, value));
  TRY(add("Content-Length", std::to_string(post.body.size())));
  return head + "\r\n";
}

std::string first_lines(const Url& url, const HttpExchange& exchange, const HttpOptions& options) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nConnection: close\r\n{}",
      exchange.target(url), url.authority(), options.user_agent, exchange.proxy_line());
}

Result<void> send_request(HttpExchange& exchange, const std::string& head, std::span<const std::byte> body) {
  TRY(exchange.send(std::as_bytes(std::span(head))));
  return exchange.send(body);
}

// A body that never ends, or breaks off, is as good as the piece that came.
std::string beginning_of_body(HttpExchange& exchange) {
  std::string kept;
  const HttpSink keep = [&kept](std::span<const std::byte> bytes) -> Result<void> {
    const auto fitting = bytes.first(std::min(bytes.size(), kMaxAnswerBytes - kept.size()));
    kept.append(reinterpret_cast<const char*>(fitting.data()), fitting.size());
    if (kept.size() == kMaxAnswerBytes) return make_error(ErrorCode::exhausted, "enough");
    return {};
  };
  [[maybe_unused]] const auto ended = exchange.receive_body(keep);
  return kept;
}

Result<HttpPostAnswer> post_to(const Url& url, const HttpPost& post, const HttpOptions& options) {
  const std::string headers = TRY(headers_of(post));
  HttpExchange exchange(options, std::chrono::steady_clock::now() + options.total_timeout);
  TRY(post.socket.empty() ? exchange.connect(url) : exchange.connect_to_socket(post.socket));
  auto sent = send_request(exchange, first_lines(url, exchange, options) + headers, post.body);
  // Who refuses a body may close before it was sent; the reason is there to be read.
  auto received = exchange.receive_header();
  if (!received) return sent ? std::move(received).error() : std::move(sent).error();
  HttpPostAnswer answer{exchange.status(), std::string(exchange.field(field::retry_after)),
                        std::string(exchange.field(field::location)), ""};
  const bool is_good = answer.status >= 200 && answer.status < 300;
  if (!is_good || post.wants_body) answer.body = beginning_of_body(exchange);
  return answer;
}

}  // namespace

Result<HttpPostAnswer> http_post(const HttpPost& post, const HttpOptions& options) {
  const Url url = TRY(Url::parse(post.url));
  auto answer = post_to(url, post, options);
  if (answer) return answer;
  // Without the query, which may differ from one request to the next, and hold a secret.
  const std::string address = url.text();
  const std::string place =
      post.socket.empty() ? address.substr(0, address.find('?')) : "unix://" + post.socket;
  Error error = std::move(answer).error();
  error.message = fmt::format("post to {}: {}", place, error.message);
  return error;
}

}  // namespace ddprof
