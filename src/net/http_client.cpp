// The sockets are ours and never block, so that every step has its deadline and can be given up, name
// look-ups included, which Asio would join at the end. What HTTP is made of is Boost.Beast's to know.
#include "net/http_client.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "net/stream.hpp"
#include "net/tls.hpp"
#include "net/url.hpp"

namespace ddprof {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMaxHeaderBytes = 64U << 10U;
constexpr std::size_t kReadBytes = 64U << 10U;

std::string request_text(const Url& url, const HttpOptions& options) {
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
      "Connection: close\r\n\r\n",
      url.target, url.authority(), options.user_agent);
}

// One request and its answer on one connection.
class Exchange {
 public:
  Exchange(const HttpOptions& options, Deadline end) : options_(options), end_(end), waiter_(options.stop) {
    parser_.header_limit(kMaxHeaderBytes);
    parser_.body_limit(boost::none);  // receive_body() counts, and has the better words
  }

  Result<void> connect(const Url& url) {
    const Deadline deadline = within(options_.connect_timeout);
    stream_ = TRY(connect_tcp(url.host, url.port, deadline, waiter_));
    if (url.is_tls)
      stream_ = TRY(start_tls(std::move(stream_), url.host, options_.certificate_file, deadline));
    return {};
  }

  Result<void> ask(const Url& url) {
    const std::string request = request_text(url, options_);
    const Deadline deadline = within(options_.first_byte_timeout);
    TRY(stream_->write_all(std::as_bytes(std::span(request)), deadline));
    while (!parser_.is_header_done()) {
      if (!TRY(parse())) TRY(receive(deadline));
    }
    return {};
  }

  [[nodiscard]] unsigned status() const { return parser_.get().result_int(); }
  [[nodiscard]] std::string_view field(http::field name) const {
    const auto value = parser_.get()[name];
    return {value.data(), value.size()};
  }

  Result<std::uint64_t> receive_body(const HttpSink& sink);

 private:
  [[nodiscard]] Deadline within(milliseconds limit) const {
    return std::min(end_, steady_clock::now() + limit);
  }

  Result<void> receive(Deadline deadline);
  // False when there is nothing to parse before more has been received.
  Result<bool> parse();
  [[nodiscard]] Error too_large() const {
    return make_error(ErrorCode::exhausted, "larger than the {} bytes that are allowed", options_.max_bytes);
  }

  const HttpOptions& options_;
  Deadline end_;
  Waiter waiter_;
  std::unique_ptr<Stream> stream_;
  beast::flat_buffer received_;
  http::response_parser<http::buffer_body> parser_;
  bool is_at_end_ = false;
};

Result<void> Exchange::receive(Deadline deadline) {
  if (is_at_end_) return make_error(ErrorCode::corrupt, "the answer ends too early");
  const auto space = received_.prepare(kReadBytes);
  const std::size_t count =
      TRY(stream_->read_some({static_cast<std::byte*>(space.data()), space.size()}, deadline));
  received_.commit(count);
  is_at_end_ = count == 0;
  return {};
}

Result<bool> Exchange::parse() {
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

Result<std::uint64_t> Exchange::receive_body(const HttpSink& sink) {
  if (parser_.content_length().value_or(0) > options_.max_bytes) return too_large();
  std::array<std::byte, kReadBytes> piece;
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

bool is_redirection(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// An answer, or where to ask instead.
struct Outcome {
  HttpAnswer answer;
  std::optional<Url> next;
};

Result<Outcome> ask_once(const Url& url, const HttpOptions& options, Deadline end, const HttpSink& sink) {
  Exchange exchange(options, end);
  TRY(exchange.connect(url));
  TRY(exchange.ask(url));
  Outcome outcome{{exchange.status(), 0}, {}};
  if (is_redirection(exchange.status())) {
    outcome.next = TRY(url.follow(exchange.field(http::field::location)));
    if (url.is_tls && !outcome.next->is_tls)
      return make_error(ErrorCode::failed, "redirected to {}, which is not encrypted", outcome.next->text());
  } else if (exchange.status() == 200) {
    const std::string_view encoding = exchange.field(http::field::content_encoding);
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
    if (!outcome) return make_error(outcome.error().code, "get {}: {}", here.text(), outcome.error().message);
    if (!outcome->next) return outcome->answer;
    here = std::move(*outcome->next);
  }
  return make_error(ErrorCode::failed, "get {}: more than {} redirections", url, options.max_redirects);
}

}  // namespace ddprof
