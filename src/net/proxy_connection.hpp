#pragma once

#include <memory>
#include <string>

#include "net/http_client.hpp"
#include "net/proxy.hpp"
#include "net/stream.hpp"
#include "net/url.hpp"

namespace ddprof {

// A connection to a proxy: for an http URL, to send it requests that name the whole URL; for an https one,
// with a tunnel to the host behind, in which TLS can start. The waiter must outlive the stream. Errors name
// the proxy, never its password; `permission_denied` when it makes no sense to ask it again.
Result<std::unique_ptr<Stream>> connect_by_proxy(const Proxy& proxy, const Url& url,
                                                 const HttpOptions& options, Deadline deadline,
                                                 const Waiter& waiter);

// The line of a request that tells the proxy who asks; empty if there is none.
[[nodiscard]] std::string proxy_authorization_line(const Proxy& proxy);

}  // namespace ddprof
