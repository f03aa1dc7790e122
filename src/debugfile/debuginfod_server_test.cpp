// Debian's own debuginfod serves a program whose debug information is nowhere else.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "debugfile/debug_files.hpp"
#include "debugfile/debug_program_fixture.hpp"
#include "debugfile/debuginfod_client.hpp"
#include "net/http_client.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

constexpr auto kServerPatience = std::chrono::minutes(1);

class DebuginfodServer {
 public:
  explicit DebuginfodServer(const std::string& folder) {
    {
      const RawServer free_port("");
      url_ = free_port.url();
    }
    const std::string port = url_.substr(url_.rfind(':') + 1);
    const std::string script = "exec env -u DEBUGINFOD_URLS HOME='" + folder +
                               "' debuginfod -d :memory: -p " + port + " -F '" + folder + "' >/dev/null 2>&1";
    std::array<const char*, 4> arguments = {"sh", "-c", script.c_str(), nullptr};
    ::posix_spawnp(&pid_, "sh", nullptr, nullptr, const_cast<char**>(arguments.data()), environ);
  }
  ~DebuginfodServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  DebuginfodServer(const DebuginfodServer&) = delete;
  DebuginfodServer& operator=(const DebuginfodServer&) = delete;

  // Until it has scanned the folder; false when it cannot run.
  [[nodiscard]] bool serves(const BuildId& build_id) const {
    const auto deadline = std::chrono::steady_clock::now() + kServerPatience;
    while (std::chrono::steady_clock::now() < deadline && ::waitpid(pid_, nullptr, WNOHANG) == 0) {
      const auto answer = http_get(url_ + "/buildid/" + build_id.hex() + "/debuginfo", {},
                                   [](std::span<const std::byte>) -> Result<void> { return {}; });
      if (answer && answer->status == 200) return true;
      std::this_thread::yield();
    }
    return false;
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  pid_t pid_ = -1;
  std::string url_;
};

TEST(DebuginfodServer, NamesAProgramThatHasNothingOfItsOwn) {
  if (std::system("command -v debuginfod >/dev/null") != 0) GTEST_SKIP() << "debuginfod is not installed";
  DebugProgram program;
  program.separate();
  program.folder().run("mkdir served && mv root/opt/app/program.debug served/");
  const DebuginfodServer server(program.folder().path("served"));
  ASSERT_TRUE(server.serves(program.build_id()));

  const std::string cache = program.folder().path("cache");
  PatientOpener opener(kServerPatience);
  DebugFileFinder finder(opener, {"/nonexistent", cache});
  const Binary binary{&program.file(), program.build_id(), std::string(DebugProgram::kPath), program.root()};
  const DebugFiles before(finder, binary);
  EXPECT_EQ(before.with_debug_info(), nullptr);
  ASSERT_EQ(before.missing().size(), 1U);

  DebuginfodSettings settings;
  settings.urls = {server.url()};
  settings.cache_folder = cache;
  DebuginfodClient client(settings);
  const BuildId unknown(std::as_bytes(std::span("a build id of nobody")).first(20));
  client.post_request(before.missing()[0], 1);
  client.post_request(unknown, 2);
  ASSERT_TRUE(client.wait(DebuginfodClient::Clock::now() + kServerPatience));
  EXPECT_EQ(client.status(before.missing()[0]).state, DebuginfodState::found);
  EXPECT_EQ(client.status(unknown).state, DebuginfodState::absent) << client.status(unknown).reason;

  const DebugFiles after(finder, binary);
  EXPECT_NE(after.with_debug_info(), nullptr);
  EXPECT_EQ(after.symbol_origin(), SymbolOrigin::separate);
  EXPECT_EQ(after.problem(), "");
}

}  // namespace
}  // namespace ddprof
