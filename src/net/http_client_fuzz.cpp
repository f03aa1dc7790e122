// Arbitrary bytes as the answer of a server, over a real connection: whatever it says, the client comes back,
// and never hands out more than it may. The same bytes answer a get, a post whose body nobody reads, and a
// proxy's client: those that let it pass go on as the first words of TLS.
#include <cstdlib>
#include <mutex>

#include "net/http_client.hpp"
#include "net/http_post.hpp"
#include "net/raw_server_fixture.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  static std::mutex mutex;
  static std::string answer;
  static const RawServer server([](const RawServer::Client& client) {
    std::lock_guard lock(mutex);
    client.send(answer);
  });
  {
    std::lock_guard lock(mutex);
    answer.assign(reinterpret_cast<const char*>(data), size);
  }
  HttpOptions options;
  options.max_bytes = 1000;
  options.max_redirects = 0;
  std::uint64_t total = 0;
  const auto result =
      http_get(server.url(), options, [&total](std::span<const std::byte> bytes) -> Result<void> {
        total += bytes.size();
        return {};
      });
  if (total > options.max_bytes || (result && result->body_bytes != total)) std::abort();
  static const std::string body(10'000, 'b');
  HttpPost post{.url = server.url(), .socket = {}, .content_type = "x/y", .headers = {}};
  post.body = std::as_bytes(std::span(body));
  const auto posted = http_post(post, options);
  if (posted && posted->body.size() > kMaxAnswerBytes) std::abort();
  if (posted && posted->status < 200 && posted->status != 101) std::abort();
  options.proxies = [](const std::string& name) { return name == "https_proxy" ? server.url() : ""; };
  post.url = "https://intake.test/";
  if (http_post(post, options)) std::abort();  // nobody here has a certificate
  return 0;
}
