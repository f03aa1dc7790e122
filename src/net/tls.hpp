#pragma once

#include <memory>
#include <string>

#include "net/stream.hpp"

namespace ddprof {

// TLS 1.2 or newer over a connection. The other side must prove to be `host` by a certificate that an
// authority in `certificate_file` has signed; empty: those that the system trusts, or that SSL_CERT_FILE and
// SSL_CERT_DIR name. Fails with `permission_denied`, and the cure, when it makes no sense to try again.
Result<std::unique_ptr<Stream>> start_tls(std::unique_ptr<Stream> connection, const std::string& host,
                                          const std::string& certificate_file, Deadline deadline);

// Whether a file can be read and holds certificates.
Result<void> check_certificate_file(const std::string& file);

}  // namespace ddprof
