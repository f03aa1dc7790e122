#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "net/stream.hpp"

namespace ddprof {

// What is wrong with a certificate. It is taken down while OpenSSL looks at it; afterwards it is gone.
struct CertificateTrouble {
  std::string host;              // that was asked for
  std::string certificate_file;  // of the authorities that are trusted; empty: those of the system
  int reason = 0;                // X509_V_ERR_…; 0: nothing
  std::string names;             // whom it is for: "a.example, b.example"
  std::string issuer;
  std::string valid_from, valid_until;  // "2026-11-15"
};

// The other side must have a good certificate; the first thing that is wrong with it goes to `trouble`, which
// must outlive the session.
void verify_and_keep_trouble(SSL* session, CertificateTrouble& trouble);

// In words, with the hint that helps.
[[nodiscard]] Error certificate_error(const CertificateTrouble& trouble);

// What OpenSSL complained about last, and nothing left of it for the next call.
[[nodiscard]] Error tls_error(ErrorCode code);

// TLS starts with a handshake or an alert; what HTTP servers say in their place looks like neither.
[[nodiscard]] bool is_start_of_tls(std::byte first);
[[nodiscard]] Error not_tls_error();

// TLS 1.2 or newer over a connection. The other side must prove to be `host` by a certificate that an
// authority in `certificate_file` has signed; empty: those that the system trusts, or that SSL_CERT_FILE and
// SSL_CERT_DIR name. Fails with `permission_denied`, and a hint, when it makes no sense to try again.
Result<std::unique_ptr<Stream>> start_tls(std::unique_ptr<Stream> connection, const std::string& host,
                                          const std::string& certificate_file, Deadline deadline);

// Whether a file can be read and holds certificates.
Result<void> check_certificate_file(const std::string& file);

}  // namespace ddprof
