#pragma once

#include <memory>
#include <string>

#include "net/stream.hpp"

namespace ddprof {

// TLS 1.2 or newer over a connection. The other side must prove to be `host` by a certificate that an
// authority in `certificate_file` has signed; empty: those that the system trusts.
Result<std::unique_ptr<Stream>> start_tls(std::unique_ptr<Stream> connection, const std::string& host,
                                          const std::string& certificate_file, Deadline deadline);

}  // namespace ddprof
