#include "debugfile/debuginfod_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "debugfile/debug_files.hpp"
#include "debugfile/debug_program_fixture.hpp"
#include "debugfile/debuginfod_cache.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kLong = std::chrono::minutes(5);
const std::string kNotFound = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

// A build id of nothing.
BuildId some_id(unsigned char number) {
  const std::vector<std::byte> bytes(20, std::byte{number});
  return BuildId(bytes);
}

class Debuginfod : public testing::Test {
 protected:
  DebuginfodSettings settings(std::vector<std::string> urls) {
    DebuginfodSettings result;
    result.urls = std::move(urls);
    result.cache_folder = cache_.path("cache/debuginfod_client");
    return result;
  }
  // Asks for one build id and waits for what comes of it.
  DebuginfodStatus ask(const DebuginfodSettings& how, const BuildId& build_id) {
    DebuginfodClient client(how);
    client.post_request(build_id, 1);
    EXPECT_TRUE(client.wait(DebuginfodClient::Clock::now() + kLong));
    EXPECT_FALSE(client.is_pending(build_id));
    return client.status(build_id);
  }
  [[nodiscard]] std::string cached_name(const BuildId& build_id) const {
    return "cache/debuginfod_client/" + build_id.hex() + "/debuginfo";
  }
  // Everything below the cache folder that a server sent.
  [[nodiscard]] std::vector<std::string> cached_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_.path()))
      if (entry.is_regular_file() && entry.path().filename() != "cache_clean_interval_s")
        names.push_back(entry.path().lexically_relative(cache_.path()));
    return names;
  }
  [[nodiscard]] mode_t mode_of(const std::string& name) const {
    struct stat status {};
    ::stat(cache_.path(name).c_str(), &status);
    return status.st_mode & 07777;
  }

  ScratchFolder cache_;
  DebugProgram program_;
  std::string content_ = program_.folder().read("root/opt/app/program");
  BuildId build_id_ = program_.build_id();
};

TEST_F(Debuginfod, BringsAFileToTheCacheWhereTheFinderSeesIt) {
  const RawServer server(http_answer(content_));
  EXPECT_EQ(ask(settings({server.url("/prefix")}), build_id_).state, DebuginfodState::found);
  EXPECT_THAT(server.requests().at(0),
              HasSubstr("GET /prefix/buildid/" + build_id_.hex() + "/debuginfo HTTP/1.1\r\n"));
  EXPECT_EQ(cache_.read(cached_name(build_id_)), content_);
  EXPECT_EQ(mode_of(cached_name(build_id_)), 0600U);
  EXPECT_EQ(mode_of("cache/debuginfod_client"), 0700U);
  EXPECT_THAT(cached_files(), ElementsAre(cached_name(build_id_)));

  program_.in_app("strip program");
  PatientOpener opener(kLong);
  DebugFileFinder finder(opener, {"/nonexistent", cache_.path("cache/debuginfod_client")});
  const DebugFiles found(finder,
                         {&program_.file(), build_id_, std::string(DebugProgram::kPath), program_.root()});
  EXPECT_NE(found.with_debug_info(), nullptr);
}

TEST_F(Debuginfod, DoesNotAskForWhatIsInTheCache) {
  RawServer server(http_answer(content_));
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::found);
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::found);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Debuginfod, ReplacesWhatIsSpoiltInTheCache) {
  cache_.write(cached_name(build_id_), "spoilt");
  const RawServer server(http_answer(content_));
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::found);
  EXPECT_EQ(cache_.read(cached_name(build_id_)), content_);
}

TEST_F(Debuginfod, RemembersThatNobodyHasAFileUntilThatIsOld) {
  const RawServer server(kNotFound);
  EXPECT_EQ(ask(settings({server.url(), server.url()}), build_id_).state, DebuginfodState::absent);
  EXPECT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::absent);
  EXPECT_EQ(server.requests().size(), 2U);
  cache_.run("touch -d '11 minutes ago' " + cached_name(build_id_));
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::absent);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(Debuginfod, AsksTheNextServerWhenOneIsDeadOrHasNothing) {
  RawServer dead("");
  dead.close();
  const RawServer empty(kNotFound);
  const RawServer good(http_answer(content_));
  EXPECT_EQ(ask(settings({dead.url(), empty.url(), good.url()}), build_id_).state, DebuginfodState::found);
}

TEST_F(Debuginfod, SaysWhyNobodyAnsweredAndLeavesDeadServersAlone) {
  const RawServer broken("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
  DebuginfodClient client(settings({broken.url()}));
  client.post_request(some_id(1), 1);
  client.post_request(some_id(2), 1);
  ASSERT_TRUE(client.wait(DebuginfodClient::Clock::now() + kLong));
  EXPECT_EQ(client.status(some_id(1)).state, DebuginfodState::failed);
  EXPECT_THAT(client.status(some_id(2)).reason, HasSubstr("status 500"));
  EXPECT_EQ(broken.requests().size(), 1U);
  EXPECT_EQ(client.finished(), 2U);
  EXPECT_THAT(cached_files(), testing::IsEmpty());
  // A server that is down may have it: no absence is remembered.
  EXPECT_EQ(client.status(some_id(3)).state, DebuginfodState::unknown);
}

TEST_F(Debuginfod, RefusesWhatALyingServerSends) {
  DebugProgram other("-g", 2);
  const RawServer of_another_build(http_answer(other.folder().read("root/opt/app/program")));
  const RawServer rubbish(http_answer("rubbish"));
  const RawServer nothing(http_answer(""));
  EXPECT_THAT(ask(settings({of_another_build.url()}), build_id_).reason, HasSubstr("another build"));
  EXPECT_THAT(ask(settings({rubbish.url()}), build_id_).reason, HasSubstr("no ELF file"));
  EXPECT_THAT(ask(settings({nothing.url()}), build_id_).reason, HasSubstr("no ELF file"));
  EXPECT_THAT(cached_files(), testing::IsEmpty());
  const RawServer good(http_answer(content_));
  EXPECT_EQ(ask(settings({of_another_build.url(), good.url()}), build_id_).state, DebuginfodState::found);
  EXPECT_EQ(cache_.read(cached_name(build_id_)), content_);
}

TEST_F(Debuginfod, RefusesFilesThatAreTooLarge) {
  const RawServer server(http_answer(content_));
  DebuginfodSettings how = settings({server.url()});
  how.max_bytes = content_.size() - 1;
  EXPECT_THAT(ask(how, build_id_).reason, HasSubstr("larger than"));
  EXPECT_THAT(cached_files(), testing::IsEmpty());
}

TEST_F(Debuginfod, AsksForTheHottestFirst) {
  std::promise<void> first_came;
  std::promise<void> all_posted;
  std::atomic<int> count = 0;
  const RawServer server([&](const RawServer::Client& client) {
    if (count++ == 0) {
      first_came.set_value();
      all_posted.get_future().wait();
    }
    client.send(kNotFound);
  });
  DebuginfodClient client(settings({server.url()}));
  client.post_request(some_id(1), 1);
  first_came.get_future().wait();
  client.post_request(some_id(2), 5);
  client.post_request(some_id(3), 10);
  client.post_request(some_id(4), 1);
  client.post_request(some_id(4), 20);  // it has become hotter
  all_posted.set_value();
  ASSERT_TRUE(client.wait(DebuginfodClient::Clock::now() + kLong));
  std::vector<std::string> order;
  for (const std::string& request : server.requests()) order.push_back(request.substr(13, 2));
  EXPECT_THAT(order, ElementsAre("01", "04", "03", "02"));
}

TEST_F(Debuginfod, DoesNotHoldAnybodyUpAtTheEnd) {
  std::promise<void> came;
  const RawServer server([&](const RawServer::Client& client) {
    came.set_value();
    client.wait_until_gone();
  });
  {
    DebuginfodClient client(settings({server.url()}));
    client.post_request(build_id_, 1);
    came.get_future().wait();
    EXPECT_TRUE(client.is_pending(build_id_));
    EXPECT_FALSE(client.wait(DebuginfodClient::Clock::now()));
  }
  EXPECT_THAT(cached_files(), testing::IsEmpty());
}

TEST_F(Debuginfod, SaysThatThereIsNoPlaceForFiles) {
  cache_.write("cache", "a file, not a folder");
  const RawServer server(http_answer(content_));
  EXPECT_EQ(ask(settings({server.url()}), build_id_).state, DebuginfodState::failed);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Debuginfod, RemovesWhatNobodyReadsAnyMore) {
  const DebuginfodCache cache(cache_.path());
  cache.clean();
  ASSERT_TRUE(cache_.has("cache_clean_interval_s"));
  cache_.write("abcdef/debuginfo", "old");
  cache_.write("abcd01/debuginfo", "new");
  cache_.write("not a build id/debuginfo", "old");
  cache_.run("touch -d '8 days ago' abcdef/debuginfo 'not a build id/debuginfo'");
  cache.clean();
  EXPECT_TRUE(cache_.has("abcdef/debuginfo"));  // not due yet
  cache_.run("touch -d '2 days ago' cache_clean_interval_s");
  cache.clean();
  EXPECT_FALSE(cache_.has("abcdef"));
  EXPECT_TRUE(cache_.has("abcd01/debuginfo"));
  EXPECT_TRUE(cache_.has("not a build id/debuginfo"));
}

}  // namespace
}  // namespace ddprof
