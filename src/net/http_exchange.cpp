#include "net/http_exchange.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "net/proxy_connection.hpp"
#include "net/tls.hpp"

namespace ddprof {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kMaxHeaderBytes = 64U << 10U;
constexpr std::size_t kPieceBytes = 64U << 10U;
constexpr int kMaxAnswers = 16;  // to one request; all but the last only say that it comes
constexpr unsigned kSwitchingProtocols = 101;

Error tls_in_place_of_http() {
  return with_hint(make_error(ErrorCode::permission_denied, "the other side speaks TLS"),
                   "https:// in place of http://");
}

}  // namespace

HttpExchange::HttpExchange(const HttpOptions& options, Deadline end)
    : options_(options), end_(end), waiter_(options.stop) {
  begin_answer();
}

void HttpExchange::begin_answer() {
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(boost::none);  // receive_body() counts, and has the better words
}

Deadline HttpExchange::within(std::chrono::milliseconds limit) const {
  return std::min(end_, std::chrono::steady_clock::now() + limit);
}

Result<void> HttpExchange::connect(const Url& url) {
  const Deadline deadline = within(options_.connect_timeout);
  if (options_.proxies) proxy_ = TRY(choose_proxy(url, options_.proxies));
  stream_ = TRY(proxy_ ? connect_by_proxy(*proxy_, url, options_, deadline, waiter_)
                       : connect_tcp(url.host, url.port, deadline, waiter_));
  if (url.is_tls) proxy_.reset();  // it carries bytes, and is not asked
  if (url.is_tls) stream_ = TRY(start_tls(std::move(stream_), url.host, options_.certificate_file, deadline));
  return {};
}

Result<void> HttpExchange::connect_to_socket(const std::string& path) {
  stream_ = TRY(connect_unix(path, within(options_.connect_timeout), waiter_));
  return {};
}

std::string HttpExchange::target(const Url& url) const { return proxy_ ? url.text() : url.target; }

std::string HttpExchange::proxy_line() const { return proxy_ ? proxy_authorization_line(*proxy_) : ""; }

Result<void> HttpExchange::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    TRY(stream_->write_all(piece, within(options_.progress_timeout)));
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

Result<void> HttpExchange::receive_header() {
  const Deadline deadline = within(options_.first_byte_timeout);
  for (int i = 0; i < kMaxAnswers; ++i) {
    while (!parser_->is_header_done()) {
      if (!TRY(parse())) TRY(receive(deadline));
    }
    if (status() >= 200 || status() == kSwitchingProtocols) return {};
    begin_answer();
  }
  return make_error(ErrorCode::corrupt, "an answer that never comes to its end");
}

Error HttpExchange::too_large() const {
  return make_error(ErrorCode::exhausted, "larger than the {} bytes that are allowed", options_.max_bytes);
}

Result<void> HttpExchange::receive(Deadline deadline) {
  if (is_at_end_) return make_error(ErrorCode::corrupt, "the answer ends too early");
  const auto space = received_.prepare(kPieceBytes);
  const std::span<std::byte> buffer(static_cast<std::byte*>(space.data()), space.size());
  const std::size_t count = TRY(stream_->read_some(buffer, deadline));
  const bool is_start = received_.size() == 0 && !parser_->got_some();
  if (is_start && count != 0 && is_start_of_tls(buffer[0])) return tls_in_place_of_http();
  received_.commit(count);
  is_at_end_ = count == 0;
  return {};
}

Result<bool> HttpExchange::parse() {
  beast::error_code error;
  std::size_t used = 0;
  if (received_.size() != 0) {
    used = parser_->put(received_.data(), error);
    received_.consume(used);
  } else if (is_at_end_ && parser_->got_some()) {
    parser_->put_eof(error);
  }
  if (error && error != http::error::need_more && error != http::error::need_buffer)
    return make_error(ErrorCode::corrupt, "not an HTTP answer: {}", error.message());
  return used != 0 || parser_->is_done();
}

Result<std::uint64_t> HttpExchange::receive_body(const HttpSink& sink) {
  if (parser_->content_length().value_or(0) > options_.max_bytes) return too_large();
  std::array<std::byte, kPieceBytes> piece;
  std::uint64_t total = 0;
  std::uint64_t enough = options_.progress_bytes;
  Deadline deadline = within(options_.progress_timeout);
  while (!parser_->is_done()) {
    auto& body = parser_->get().body();
    body.data = piece.data();
    body.size = piece.size();
    const bool goes_on = TRY(parse());
    const std::size_t count = piece.size() - body.size;
    total += count;
    if (total > options_.max_bytes) return too_large();
    if (count != 0) TRY(sink(std::span(piece).first(count)));
    if (total >= enough) {
      enough = total + options_.progress_bytes;
      deadline = within(options_.progress_timeout);
    }
    if (!goes_on && count == 0) TRY(receive(deadline));
  }
  return total;
}

}  // namespace ddprof
