#include "net/http_exchange.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "net/tls.hpp"

namespace ddprof {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kMaxHeaderBytes = 64U << 10U;
constexpr std::size_t kPieceBytes = 64U << 10U;

}  // namespace

HttpExchange::HttpExchange(const HttpOptions& options, Deadline end)
    : options_(options), end_(end), waiter_(options.stop) {
  parser_.header_limit(kMaxHeaderBytes);
  parser_.body_limit(boost::none);  // receive_body() counts, and has the better words
}

Deadline HttpExchange::within(std::chrono::milliseconds limit) const {
  return std::min(end_, std::chrono::steady_clock::now() + limit);
}

Result<void> HttpExchange::connect(const Url& url) {
  const Deadline deadline = within(options_.connect_timeout);
  stream_ = TRY(connect_tcp(url.host, url.port, deadline, waiter_));
  if (url.is_tls) stream_ = TRY(start_tls(std::move(stream_), url.host, options_.certificate_file, deadline));
  return {};
}

Result<void> HttpExchange::connect_to_socket(const std::string& path) {
  stream_ = TRY(connect_unix(path, within(options_.connect_timeout), waiter_));
  return {};
}

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
  while (!parser_.is_header_done()) {
    if (!TRY(parse())) TRY(receive(deadline));
  }
  return {};
}

Error HttpExchange::too_large() const {
  return make_error(ErrorCode::exhausted, "larger than the {} bytes that are allowed", options_.max_bytes);
}

Result<void> HttpExchange::receive(Deadline deadline) {
  if (is_at_end_) return make_error(ErrorCode::corrupt, "the answer ends too early");
  const auto space = received_.prepare(kPieceBytes);
  const std::size_t count =
      TRY(stream_->read_some({static_cast<std::byte*>(space.data()), space.size()}, deadline));
  received_.commit(count);
  is_at_end_ = count == 0;
  return {};
}

Result<bool> HttpExchange::parse() {
  beast::error_code error;
  std::size_t used = 0;
  if (received_.size() != 0) {
    used = parser_.put(received_.data(), error);
    received_.consume(used);
  } else if (is_at_end_ && parser_.got_some()) {
    parser_.put_eof(error);
  }
  if (error && error != http::error::need_more && error != http::error::need_buffer)
    return make_error(ErrorCode::corrupt, "not an HTTP answer: {}", error.message());
  return used != 0 || parser_.is_done();
}

Result<std::uint64_t> HttpExchange::receive_body(const HttpSink& sink) {
  if (parser_.content_length().value_or(0) > options_.max_bytes) return too_large();
  std::array<std::byte, kPieceBytes> piece;
  std::uint64_t total = 0;
  std::uint64_t enough = options_.progress_bytes;
  Deadline deadline = within(options_.progress_timeout);
  while (!parser_.is_done()) {
    auto& body = parser_.get().body();
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
