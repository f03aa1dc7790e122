#pragma once

// For tests: `openssl s_server`, which serves the files of a folder over TLS.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <string>
#include <thread>

#include "base/scratch_fixture.hpp"
#include "net/http_client.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {

class TlsServer {
 public:
  struct Certificate {
    std::string from = "20200101000000Z", until = "20990101000000Z";
  };

  // With a certificate for "localhost" and "intake.test" that it has signed itself.
  TlsServer() : TlsServer(Certificate{}, "") {}
  TlsServer(const Certificate& certificate, const std::string& options) {
    folder_.write(
        "ca.conf",
        "[ca]\ndefault_ca=own\n[own]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\n"
        "policy=any\nx509_extensions=names\n[any]\ncommonName=supplied\n"
        "[names]\nsubjectAltName=DNS:localhost,DNS:intake.test\n");
    folder_.run(
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out "
        "request.pem -subj /CN=tester && : > index "
        "&& "
        "openssl ca -batch -notext -selfsign -config ca.conf -keyfile key.pem -in request.pem "
        "-out certificate.pem -startdate " +
        certificate.from + " -enddate " + certificate.until);
    folder_.write("file", "over TLS");
    const std::string script = "cd '" + folder_.path() +
                               "' && exec openssl s_server -WWW -quiet -cert certificate.pem -key key.pem "
                               "-accept 127.0.0.1:" +
                               std::to_string(port_) + " " + options + " </dev/null >/dev/null 2>&1";
    std::array<const char*, 4> arguments = {"sh", "-c", script.c_str(), nullptr};
    if (::posix_spawnp(&server_, "sh", nullptr, nullptr, const_cast<char**>(arguments.data()), environ) != 0)
      throw std::runtime_error("no openssl s_server");
    wait_until_up();
  }
  ~TlsServer() {
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string certificate_file() const { return folder_.path("certificate.pem"); }
  [[nodiscard]] std::string url(const std::string& host) const {
    return "https://" + host + ":" + std::to_string(port_) + "/file";
  }

 private:
  static std::uint16_t free_port() {
    const RawServer server("");  // what it was given, nobody else has
    const std::string url = server.url();
    return static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
  }
  void wait_until_up() const {
    while (::waitpid(server_, nullptr, WNOHANG) == 0) {
      const UniqueFd fd = connect_to_loopback(port_);
      if (fd.is_open()) return;
      std::this_thread::yield();
    }
    throw std::runtime_error("openssl s_server ended");
  }

  ScratchFolder folder_;
  std::uint16_t port_ = free_port();
  pid_t server_ = -1;
};

// Gets a URL, and puts the body into `body`.
inline Result<HttpAnswer> get_text(const std::string& url, const HttpOptions& options, std::string& body) {
  return http_get(url, options, [&body](std::span<const std::byte> piece) -> Result<void> {
    body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  });
}

}  // namespace ddprof
