#include "net/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <utility>

#include "net/tls_trouble.hpp"

namespace ddprof {

namespace {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSsl>;
using SslSession = std::unique_ptr<SSL, FreeSsl>;

// Debian's OpenSSL looks where Debian keeps the authorities; the binary also runs elsewhere.
bool load_authorities(SSL_CTX* context, const std::string& certificate_file) {
  if (!certificate_file.empty())
    return ::SSL_CTX_load_verify_locations(context, certificate_file.c_str(), nullptr) == 1;
  const bool is_named = std::getenv("SSL_CERT_FILE") != nullptr;  // then only that, as with any OpenSSL
  for (const char* bundle :
       {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (!is_named && ::access(bundle, R_OK) == 0) ::SSL_CTX_load_verify_locations(context, bundle, nullptr);
  }
  ::ERR_clear_error();
  return ::SSL_CTX_set_default_verify_paths(context) == 1;
}

Error unreadable_certificates(const std::string& file) {
  ::ERR_clear_error();
  if (::access(file.c_str(), R_OK) != 0) {
    const int reason = errno;
    Error error = errno_error(reason, "read certificates " + file);
    error.code = ErrorCode::permission_denied;
    return error;
  }
  return make_error(ErrorCode::permission_denied, "read certificates {}: it holds none in the form of PEM",
                    file);
}

Result<SslContext> make_context(const std::string& certificate_file) {
  // The configuration of the system's own OpenSSL may name modules that do not fit ours.
  ::OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ::ERR_clear_error();
  SslContext context(::SSL_CTX_new(::TLS_client_method()));
  if (!context) return tls_error(ErrorCode::failed);
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (!load_authorities(context.get(), certificate_file)) return unreadable_certificates(certificate_file);
  return context;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Whom the certificate must name.
bool expect_host(SSL* ssl, const std::string& host) {
  if (is_address(host)) return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str()) == 1;
  // SSL_set_tlsext_host_name() without its old-style cast.
  return ::SSL_set1_host(ssl, host.c_str()) == 1 &&
         ::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    const_cast<char*>(host.c_str())) == 1;
}

// OpenSSL only turns bytes into bytes here; the connection below moves them, with its deadlines.
class TlsStream final : public Stream {
 public:
  TlsStream(std::unique_ptr<Stream> connection, SslContext context, SslSession session,
            CertificateTrouble trouble)
      : connection_(std::move(connection)),
        context_(std::move(context)),
        session_(std::move(session)),
        trouble_(std::move(trouble)) {
    verify_and_keep_trouble(session_.get(), trouble_);
    from_peer_ = ::BIO_new(::BIO_s_mem());
    to_peer_ = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(session_.get(), from_peer_, to_peer_);  // which owns them now
  }

  Result<void> shake_hands(Deadline deadline) {
    ::SSL_set_connect_state(session_.get());
    const int done = TRY(advance(deadline, [this] { return ::SSL_do_handshake(session_.get()); }));
    if (done == 0) return make_error(ErrorCode::failed, "start TLS: closed by the other side");
    return {};
  }

  Result<std::size_t> read_some(std::span<std::byte> buffer, Deadline deadline) override {
    const int size = static_cast<int>(std::min(buffer.size(), kMaxStep));
    return static_cast<std::size_t>(
        TRY(advance(deadline, [&] { return ::SSL_read(session_.get(), buffer.data(), size); })));
  }

  Result<void> write_all(std::span<const std::byte> bytes, Deadline deadline) override {
    while (!bytes.empty()) {
      const int size = static_cast<int>(std::min(bytes.size(), kMaxStep));
      const int count =
          TRY(advance(deadline, [&] { return ::SSL_write(session_.get(), bytes.data(), size); }));
      if (count == 0) return make_error(ErrorCode::failed, "send: closed by the other side");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }

 private:
  static constexpr std::size_t kMaxStep = std::size_t{1} << 20;

  // Repeats the operation, moving bytes between, until it is done; 0 at the end of the stream.
  Result<int> advance(Deadline deadline, const std::function<int()>& operation) {
    while (true) {
      ::ERR_clear_error();
      const int status = operation();
      const int reason = ::SSL_get_error(session_.get(), status);
      TRY(send_pending(deadline));
      if (status > 0) return status;
      if (reason == SSL_ERROR_ZERO_RETURN) return 0;
      if (reason != SSL_ERROR_WANT_READ) return failure();
      TRY(receive(deadline));
    }
  }

  [[nodiscard]] Error failure() const {
    if (trouble_.reason != X509_V_OK) return certificate_error(trouble_);
    // Once there was a handshake, it is the connection that suffers, and it may recover.
    return tls_error(::SSL_is_init_finished(session_.get()) == 1 ? ErrorCode::failed
                                                                 : ErrorCode::permission_denied);
  }

  Result<void> send_pending(Deadline deadline) {
    std::array<std::byte, 16384> buffer;
    while (true) {
      const int count = ::BIO_read(to_peer_, buffer.data(), static_cast<int>(buffer.size()));
      if (count <= 0) return {};
      TRY(connection_->write_all(std::span(buffer).first(static_cast<std::size_t>(count)), deadline));
    }
  }

  Result<void> receive(Deadline deadline) {
    std::array<std::byte, 16384> buffer;
    const std::size_t count = TRY(connection_->read_some(buffer, deadline));
    // Without a farewell an attacker may have cut the answer short.
    if (count == 0) return make_error(ErrorCode::failed, "TLS: closed in the middle");
    if (!std::exchange(has_received_, true) && !is_start_of_tls(buffer[0])) return not_tls_error();
    ::BIO_write(from_peer_, buffer.data(), static_cast<int>(count));
    return {};
  }

  std::unique_ptr<Stream> connection_;
  SslContext context_;
  SslSession session_;
  CertificateTrouble trouble_;
  bool has_received_ = false;
  BIO* from_peer_ = nullptr;
  BIO* to_peer_ = nullptr;
};

}  // namespace

Result<void> check_certificate_file(const std::string& file) {
  TRY(make_context(file));
  return {};
}

Result<std::unique_ptr<Stream>> start_tls(std::unique_ptr<Stream> connection, const std::string& host,
                                          const std::string& certificate_file, Deadline deadline) {
  SslContext context = TRY(make_context(certificate_file));
  SslSession session(::SSL_new(context.get()));
  if (!session || !expect_host(session.get(), host)) return tls_error(ErrorCode::failed);
  auto stream = std::make_unique<TlsStream>(std::move(connection), std::move(context), std::move(session),
                                            CertificateTrouble{host, certificate_file});
  TRY(stream->shake_hands(deadline));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace ddprof
