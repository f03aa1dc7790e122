#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_client.hpp"
#include "net/stream.hpp"
#include "net/url.hpp"

namespace ddprof {

// One request and its answer on one connection. The sockets are ours and never block, so that every step has
// its deadline and can be given up, name look-ups included, which Asio would join at the end. What HTTP is
// made of is Boost.Beast's to know.
class HttpExchange {
 public:
  // `options` must outlive the exchange; no step goes on past `end`.
  HttpExchange(const HttpOptions& options, Deadline end);

  // By a proxy, where the options' environment names one.
  Result<void> connect(const Url& url);
  // In place of the host that an URL names.
  Result<void> connect_to_socket(const std::string& path);
  // How the request names the URL, and what it tells a proxy about us: a line, or nothing. Once connected.
  [[nodiscard]] std::string target(const Url& url) const;
  [[nodiscard]] std::string proxy_line() const;
  // Sends, piece by piece: the other side must take each in the time that is allowed for progress. One that
  // answers before it has read all is not wrong (413).
  Result<void> send(std::span<const std::byte> bytes);
  // That of the final answer: those that only say "go on" (1xx) are passed over.
  Result<void> receive_header();
  // To the end, or until the sink has an error.
  Result<std::uint64_t> receive_body(const HttpSink& sink);

  [[nodiscard]] unsigned status() const { return parser_->get().result_int(); }
  [[nodiscard]] std::string_view field(boost::beast::http::field name) const {
    const auto value = parser_->get()[name];
    return {value.data(), value.size()};
  }

 private:
  [[nodiscard]] Deadline within(std::chrono::milliseconds limit) const;
  Result<void> receive(Deadline deadline);
  // False when there is nothing to parse before more has been received.
  Result<bool> parse();
  void begin_answer();
  [[nodiscard]] Error too_large() const;

  const HttpOptions& options_;
  Deadline end_;
  Waiter waiter_;
  std::unique_ptr<Stream> stream_;
  boost::beast::flat_buffer received_;
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
  std::optional<Parser> parser_;
  std::optional<Proxy> proxy_;  // that requests go to
  bool is_at_end_ = false;
};

}  // namespace ddprof
