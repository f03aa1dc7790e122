#include "net/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/scratch_fixture.hpp"
#include "net/http_client.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

int free_port() {
  RawServer server("");  // what it was given, nobody else has
  const std::string url = server.url();
  return std::stoi(url.substr(url.rfind(':') + 1));
}

// `openssl s_server` serves the files of a folder, with a certificate for "localhost" alone.
class Tls : public testing::Test {
 protected:
  void SetUp() override {
    folder_.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj "
        "/CN=localhost "
        "-addext subjectAltName=DNS:localhost");
    folder_.write("file", "over TLS");
    port_ = free_port();
    std::string port = std::to_string(port_);
    std::string cert = folder_.path("certificate.pem");
    std::string key = folder_.path("key.pem");
    const std::string script = "cd '" + folder_.path() + "' && exec openssl s_server -WWW -quiet -cert " +
                               cert + " -key " + key + " -accept 127.0.0.1:" + port +
                               " </dev/null >/dev/null 2>&1";
    std::array<const char*, 4> arguments = {"sh", "-c", script.c_str(), nullptr};
    ASSERT_EQ(::posix_spawnp(&server_, "sh", nullptr, nullptr, const_cast<char**>(arguments.data()), environ),
              0);
  }
  void TearDown() override {
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
  }
  // Asks again until the server has come up.
  Result<HttpAnswer> get(const std::string& host, const HttpOptions& options) {
    const std::string url = "https://" + host + ":" + std::to_string(port_) + "/file";
    while (true) {
      body_.clear();
      auto answer = http_get(url, options, [this](std::span<const std::byte> piece) -> Result<void> {
        body_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
      });
      const bool is_up = answer.ok() || answer.error().message.find("refused: ") != std::string::npos ||
                         answer.error().message.find("Connection refused") == std::string::npos;
      if (is_up || ::waitpid(server_, nullptr, WNOHANG) != 0) return answer;
      std::this_thread::yield();
    }
  }

  ScratchFolder folder_;
  pid_t server_ = -1;
  int port_ = 0;
  std::string body_;
};

TEST_F(Tls, GetsAFileFromAServerThatIsTrusted) {
  HttpOptions options;
  options.certificate_file = folder_.path("certificate.pem");
  const auto answer = get("localhost", options);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(body_, "over TLS");
}

TEST_F(Tls, RefusesAServerThatNobodyTrusts) {
  const auto answer = get("localhost", {});
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("certificate refused"));
}

TEST_F(Tls, RefusesAServerWithAnothersCertificate) {
  HttpOptions options;
  options.certificate_file = folder_.path("certificate.pem");
  const auto answer = get("127.0.0.1", options);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("certificate refused"));
}

TEST(TlsHandshake, DoesNotWaitForAServerThatSaysNothing) {
  // The server waits for the end of an HTTP request, which never comes.
  const RawServer server("");
  HttpOptions options;
  options.connect_timeout = std::chrono::milliseconds(100);
  const std::string url = "https" + server.url().substr(4);
  const auto answer = http_get(url, options, [](std::span<const std::byte>) -> Result<void> { return {}; });
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("no answer in time"));
}

TEST(TlsHandshake, SaysWhichCertificatesCannotBeRead) {
  const RawServer server([](const RawServer::Client&) {});
  HttpOptions options;
  options.certificate_file = "/nonexistent";
  const std::string url = "https" + server.url().substr(4);
  const auto answer = http_get(url, options, [](std::span<const std::byte>) -> Result<void> { return {}; });
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message, HasSubstr("read certificates"));
}

}  // namespace
}  // namespace ddprof
