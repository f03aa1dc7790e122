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
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace ddprof {

namespace {

constexpr int kTroubleSlot = 0;  // of a session's extra data: the one that is the application's
constexpr int kMaxNames = 3;
constexpr std::size_t kMaxNameBytes = 64;

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { ::GENERAL_NAMES_free(names); }
};

// What is in a certificate is chosen by its maker.
std::string harmless(std::string_view text) {
  std::string shown(text.substr(0, kMaxNameBytes));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

std::string common_name(const X509_NAME* name) {
  std::array<char, 256> text{};
  for (int part : {NID_commonName, NID_organizationName}) {
    const int size = ::X509_NAME_get_text_by_NID(name, part, text.data(), static_cast<int>(text.size()));
    if (size > 0) return harmless({text.data(), static_cast<std::size_t>(size)});
  }
  return "an issuer without a name";
}

std::string text_of(const GENERAL_NAME* name) {
  if (name->type != GEN_DNS && name->type != GEN_IPADD) return "";
  const ASN1_STRING* value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
  const unsigned char* data = ::ASN1_STRING_get0_data(value);
  const auto size = static_cast<std::size_t>(::ASN1_STRING_length(value));
  if (name->type == GEN_DNS) return harmless({reinterpret_cast<const char*>(data), size});
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (size != sizeof(in_addr) && size != sizeof(in6_addr)) return "";
  ::inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, data, text.data(), text.size());
  return text.data();
}

// The hosts that a certificate is for; the common name counts only where there is no list of them.
std::string names_of(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names) return common_name(::X509_get_subject_name(certificate));
  // sk_GENERAL_NAME_value() without its old-style cast.
  const auto* stack = reinterpret_cast<const OPENSSL_STACK*>(names.get());
  const int count = ::OPENSSL_sk_num(stack);
  std::string text;
  for (int i = 0; i < std::min(count, kMaxNames); ++i) {
    const std::string name = text_of(static_cast<const GENERAL_NAME*>(::OPENSSL_sk_value(stack, i)));
    if (!name.empty()) text += (text.empty() ? "" : ", ") + name;
  }
  return count > kMaxNames ? text + ", …" : text;
}

std::string day_of(const ASN1_TIME* time) {
  std::tm day{};
  if (::ASN1_TIME_to_tm(time, &day) != 1) return "an unknown day";
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

// Called by OpenSSL for each certificate, and says what it would have said without us.
int take_down(int is_good, X509_STORE_CTX* store) {
  const auto* session =
      static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(store, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* trouble = static_cast<CertificateTrouble*>(::SSL_get_ex_data(session, kTroubleSlot));
  if (is_good == 1 || trouble->reason != 0) return is_good;
  trouble->reason = ::X509_STORE_CTX_get_error(store);
  if (const X509* certificate = ::X509_STORE_CTX_get_current_cert(store)) {
    trouble->names = names_of(certificate);
    trouble->issuer = common_name(::X509_get_issuer_name(certificate));
    trouble->valid_from = day_of(::X509_get0_notBefore(certificate));
    trouble->valid_until = day_of(::X509_get0_notAfter(certificate));
  }
  return is_good;
}

Error refusal(std::string reason, std::string hint) {
  return with_hint(make_error(ErrorCode::permission_denied, "certificate refused: {}", reason),
                   std::move(hint));
}

Error unknown_authority(const CertificateTrouble& trouble) {
  if (trouble.certificate_file.empty())
    return refusal(fmt::format("signed by {}, whom this system does not trust", trouble.issuer),
                   "--ca-file FILE or SSL_CERT_FILE=FILE, with that authority's certificate");
  return refusal(fmt::format("signed by {}, who is not in {}", trouble.issuer, trouble.certificate_file),
                 fmt::format("put that authority's certificate into {}", trouble.certificate_file));
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

struct KnownReason {
  int reason;
  std::string_view words, hint;
};

constexpr auto kKnownReasons = std::to_array<KnownReason>({
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "it only speaks versions that are too old",
     "TLS 1.2 or newer there"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "it only speaks versions that are too old", "TLS 1.2 or newer there"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "no way to encrypt that both sides have",
     "TLS 1.2 or newer there, with ciphers of today"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "it wants a certificate of ours, and ddprof has none",
     "a proxy that has one, or an address that needs none"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, "it does not know the host of that name",
     "name the host as its server does"},
});

}  // namespace

void verify_and_keep_trouble(SSL* session, CertificateTrouble& trouble) {
  ::SSL_set_ex_data(session, kTroubleSlot, &trouble);
  ::SSL_set_verify(session, SSL_VERIFY_PEER, take_down);
}

Error certificate_error(const CertificateTrouble& trouble) {
  switch (trouble.reason) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return refusal(fmt::format("it is for {}, not for {}", trouble.names, trouble.host),
                     "name the host as its certificate does");
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return refusal(fmt::format("that of {} ended on {}", trouble.names, trouble.valid_until),
                     fmt::format("renew it, or set the clock, if today is not {}", today()));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return refusal(fmt::format("that of {} only begins on {}", trouble.names, trouble.valid_from),
                     fmt::format("set the clock, if today is not {}", today()));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
      return unknown_authority(trouble);
    default:
      return refusal(::X509_verify_cert_error_string(trouble.reason), "a certificate without that fault");
  }
}

Error tls_error(ErrorCode code) {
  const unsigned long error = ::ERR_peek_last_error();
  ::ERR_clear_error();
  const auto* known = std::find_if(
      kKnownReasons.begin(), kKnownReasons.end(),
      [reason = ERR_GET_REASON(error)](const KnownReason& each) { return each.reason == reason; });
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && known != kKnownReasons.end())
    return with_hint(make_error(ErrorCode::permission_denied, "TLS: {}", known->words),
                     std::string(known->hint));
  const char* words = ::ERR_reason_error_string(error);
  return make_error(code, "TLS: {}", words == nullptr ? "failed" : words);
}

bool is_start_of_tls(std::byte first) { return first == std::byte{0x16} || first == std::byte{0x15}; }

Error not_tls_error() {
  return with_hint(make_error(ErrorCode::permission_denied, "TLS: the other side does not speak it"),
                   "http:// in place of https://, or the port where it speaks TLS");
}

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
