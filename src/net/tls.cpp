#include "net/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace ddprof {

namespace {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSsl>;
using SslSession = std::unique_ptr<SSL, FreeSsl>;

// What OpenSSL complained about last, and nothing left of it for the next call.
Error tls_error(std::string_view operation) {
  std::array<char, 256> text{};
  ::ERR_error_string_n(::ERR_peek_last_error(), text.data(), text.size());
  ::ERR_clear_error();
  return make_error(ErrorCode::failed, "{}: {}", operation, text.data());
}

// Debian's OpenSSL looks where Debian keeps the authorities; the binary also runs elsewhere.
bool load_authorities(SSL_CTX* context, const std::string& certificate_file) {
  if (!certificate_file.empty())
    return ::SSL_CTX_load_verify_locations(context, certificate_file.c_str(), nullptr) == 1;
  for (const char* bundle :
       {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (::access(bundle, R_OK) == 0) ::SSL_CTX_load_verify_locations(context, bundle, nullptr);
  }
  ::ERR_clear_error();
  return ::SSL_CTX_set_default_verify_paths(context) == 1;
}

Result<SslContext> make_context(const std::string& certificate_file) {
  // The configuration of the system's own OpenSSL may name modules that do not fit ours.
  ::OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ::ERR_clear_error();
  SslContext context(::SSL_CTX_new(::TLS_client_method()));
  if (!context) return tls_error("start TLS");
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (!load_authorities(context.get(), certificate_file))
    return tls_error("read certificates " + certificate_file);
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
  TlsStream(std::unique_ptr<Stream> connection, SslContext context, SslSession session)
      : connection_(std::move(connection)), context_(std::move(context)), session_(std::move(session)) {
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
    const long verdict = ::SSL_get_verify_result(session_.get());
    if (verdict == X509_V_OK) return tls_error("TLS");
    ::ERR_clear_error();
    return make_error(ErrorCode::failed, "certificate refused: {}", ::X509_verify_cert_error_string(verdict));
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
    // Without a farewell this may be somebody who cuts an answer short.
    if (count == 0) return make_error(ErrorCode::failed, "TLS: closed in the middle");
    ::BIO_write(from_peer_, buffer.data(), static_cast<int>(count));
    return {};
  }

  std::unique_ptr<Stream> connection_;
  SslContext context_;
  SslSession session_;
  BIO* from_peer_ = nullptr;
  BIO* to_peer_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Stream>> start_tls(std::unique_ptr<Stream> connection, const std::string& host,
                                          const std::string& certificate_file, Deadline deadline) {
  SslContext context = TRY(make_context(certificate_file));
  SslSession session(::SSL_new(context.get()));
  if (!session || !expect_host(session.get(), host)) return tls_error("start TLS");
  auto stream = std::make_unique<TlsStream>(std::move(connection), std::move(context), std::move(session));
  TRY(stream->shake_hands(deadline));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace ddprof
