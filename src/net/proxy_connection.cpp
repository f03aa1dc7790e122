#include "net/proxy_connection.hpp"

#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <span>
#include <utility>

#include "net/tls.hpp"

namespace ddprof {

namespace {

namespace http = boost::beast::http;

constexpr std::size_t kMaxTunnelHeaderBytes = 16U << 10U;

// RFC 9110, 9.3.6: the port is always there.
std::string tunnel_end(const Url& url) {
  const bool is_ipv6 = url.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", url.host, is_ipv6 ? "]" : "", url.port);
}

// The status of the answer to CONNECT. What follows the header is the tunnel; the host behind it does not
// speak before we do, so there is nothing yet.
Result<unsigned> receive_tunnel_status(Stream& stream, Deadline deadline) {
  std::string header;
  std::array<std::byte, 2048> buffer;
  while (header.find("\r\n\r\n") == std::string::npos) {
    if (header.size() > kMaxTunnelHeaderBytes)
      return make_error(ErrorCode::corrupt, "the header of its answer is too long");
    const std::size_t count = TRY(stream.read_some(buffer, deadline));
    if (count == 0) return make_error(ErrorCode::corrupt, "its answer ends too early");
    header.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
  http::response_parser<http::empty_body> parser;
  parser.skip(true);
  boost::beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(header), error);
  if ((error && error != http::error::need_more) || !parser.is_header_done())
    return make_error(ErrorCode::corrupt, "not an HTTP answer: {}", error.message());
  const unsigned status = parser.get().result_int();
  const bool is_good = status >= 200 && status < 300;
  if (is_good && used != header.size())
    return make_error(ErrorCode::corrupt, "it speaks in place of the host behind it");
  return status;
}

Error refused_tunnel(unsigned status, const Proxy& proxy, const Url& url) {
  if (status == 407) {
    const bool has_user = !proxy.authorization.empty();
    return with_hint(
        make_error(ErrorCode::permission_denied, "{} (407)",
                   has_user ? "it does not take the user and password" : "it wants a user and password"),
        proxy.variable + "=http://user:password@host:port, with the right ones");
  }
  // As with other servers: these may pass.
  const bool may_pass = status == 408 || status == 429 || status >= 500;
  return with_hint(make_error(may_pass ? ErrorCode::failed : ErrorCode::permission_denied,
                              "no way to {}: it answered {}", tunnel_end(url), status),
                   fmt::format("let the proxy pass it, or go without: NO_PROXY={}", url.host));
}

Result<void> open_tunnel(Stream& stream, const Proxy& proxy, const Url& url, const HttpOptions& options,
                         Deadline deadline) {
  const std::string request =
      fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\nUser-Agent: {1}\r\n{2}\r\n", tunnel_end(url),
                  options.user_agent, proxy_authorization_line(proxy));
  TRY(stream.write_all(std::as_bytes(std::span(request)), deadline));
  const unsigned status = TRY(receive_tunnel_status(stream, deadline));
  if (status < 200 || status >= 300) return refused_tunnel(status, proxy, url);
  return {};
}

Result<std::unique_ptr<Stream>> reach(const Proxy& proxy, const Url& url, const HttpOptions& options,
                                      Deadline deadline, const Waiter& waiter) {
  auto stream = TRY(connect_tcp(proxy.host, proxy.port, deadline, waiter));
  if (proxy.is_tls)
    stream = TRY(start_tls(std::move(stream), proxy.host, options.certificate_file, deadline));
  if (url.is_tls) TRY(open_tunnel(*stream, proxy, url, options, deadline));
  return stream;
}

}  // namespace

Result<std::unique_ptr<Stream>> connect_by_proxy(const Proxy& proxy, const Url& url,
                                                 const HttpOptions& options, Deadline deadline,
                                                 const Waiter& waiter) {
  auto stream = reach(proxy, url, options, deadline, waiter);
  if (stream) return stream;
  Error error = std::move(stream).error();
  error.message = fmt::format("proxy {}: {}", proxy.text(), error.message);
  if (error.hint.empty())
    error.hint = fmt::format("correct {}, or go without: NO_PROXY={}", proxy.variable, url.host);
  return error;
}

std::string proxy_authorization_line(const Proxy& proxy) {
  if (proxy.authorization.empty()) return "";
  return fmt::format("Proxy-Authorization: {}\r\n", proxy.authorization);
}

}  // namespace ddprof
