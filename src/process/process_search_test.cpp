#include "process/process_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <thread>

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kWebId = "3fa9" + std::string(60, '0');
const std::string kShopId = "3fb1" + std::string(60, '1');

struct Known {
  int parent = 1;
  std::string name;
  std::string executable = {};
  std::string container_id = {};
  std::string cgroup = {};
  std::string host_name = {};
};

class ProcessSearchTest : public ::testing::Test {
 protected:
  [[nodiscard]] ProcessSearch search() const {
    return ProcessSearch(
        {.list =
             [this] {
               std::vector<RunningProcess> list;
               for (const auto& [pid, known] : host)
                 list.push_back({.pid = Pid{pid}, .parent = Pid{known.parent}, .name = known.name});
               return list;
             },
         .executable = [this](Pid pid) { return host.at(to_int(pid)).executable; },
         .confinement =
             [this](Pid pid) {
               const Known& known = host.at(to_int(pid));
               return Confinement{known.container_id, known.cgroup};
             },
         .host_name = [this](Pid pid) { return host.at(to_int(pid)).host_name; },
         .of_task = [this](std::int32_t number) -> std::optional<RunningProcess> {
           if (number == 121) return RunningProcess{.pid = Pid{12}, .name = "nginx"};
           if (number == 122) return RunningProcess{.pid = Pid{122}, .is_zombie = true};
           if (!host.contains(number)) return std::nullopt;
           return RunningProcess{.pid = Pid{number}};
         }},
        Pid{5000});
  }
  [[nodiscard]] std::vector<Pid> named(const std::string& text) const {
    return search().by_name(text).value();
  }
  [[nodiscard]] std::vector<Pid> container(const std::string& text) const {
    return search().by_container(text).value().pids;
  }

  std::map<int, Known> host = {
      {5, {.parent = 12, .name = "nginx", .executable = "nginx"}},  // a worker whose number is a used one
      {12, {.name = "nginx", .executable = "nginx"}},
      {14, {.name = "gunicorn: maste", .executable = "python3.11"}},
      {20,
       {.name = "web", .container_id = kWebId, .cgroup = "/docker/" + kWebId, .host_name = "3fa900000000"}},
      {21, {.parent = 20, .name = "sh", .container_id = kWebId, .cgroup = "/docker/" + kWebId}},
      {30,
       {.name = "shop",
        .container_id = kShopId,
        .cgroup = "/kubepods/pod12-ab/" + kShopId,
        .host_name = "shop-7d9"}},
      {31,
       {.name = "side", .container_id = "77", .cgroup = "/kubepods/pod12-ab/77", .host_name = "shop-7d9"}},
      {40, {.name = "init", .cgroup = "/lxc.payload.farm/init.scope"}},
  };
};

TEST_F(ProcessSearchTest, FindsANumber) {
  EXPECT_EQ(search().by_number(12).value(), Pid{12});
  EXPECT_EQ(search().by_number(121).value(), Pid{12});  // one of its threads
  EXPECT_EQ(search().by_number(13).error().message, "attach to process 13: no such process");
  EXPECT_THAT(search().by_number(13).error().hint, HasSubstr("-p name:NAME"));
  EXPECT_THAT(search().by_number(122).error().message, HasSubstr("it has ended"));
  host[5000] = {.name = "ddprof"};
  EXPECT_THAT(search().by_number(5000).error().message, HasSubstr("that is ddprof itself"));
  EXPECT_FALSE(search().by_name("name:ddprof").ok());
}

TEST_F(ProcessSearchTest, FindsNamesParentsFirst) {
  EXPECT_THAT(named("name:nginx"), ElementsAre(Pid{12}, Pid{5}));
  EXPECT_THAT(named("name:ngin*"), ElementsAre(Pid{12}, Pid{5}));
  EXPECT_THAT(named("name:python3*"), ElementsAre(Pid{14}));
  EXPECT_THAT(named("name:/^(shop|side)$/"), ElementsAre(Pid{30}, Pid{31}));
}

TEST_F(ProcessSearchTest, SaysWhatToDoWithoutAMatch) {
  const Error error = search().by_name("name:ngnix").error();
  EXPECT_EQ(error.message, "-p name:ngnix: no process has that name; did you mean nginx?");
  EXPECT_THAT(error.hint, HasSubstr("ps -e"));
  host[5].name = "a\033]0;x";
  EXPECT_EQ(search().by_name("name:a]0;y").error().message.find('\033'), std::string::npos);
}

TEST_F(ProcessSearchTest, FindsContainersByIdAndItsBeginning) {
  EXPECT_THAT(container(kWebId), ElementsAre(Pid{20}, Pid{21}));
  EXPECT_THAT(container("3fa9"), ElementsAre(Pid{20}, Pid{21}));
  EXPECT_FALSE(search().by_container("3fa9")->is_named);
  EXPECT_THAT(search().by_container("3f").error().message,
              HasSubstr("several begin so: " + kWebId + ", " + kShopId));
}

TEST_F(ProcessSearchTest, FindsContainersByNames) {
  EXPECT_THAT(container("farm"), ElementsAre(Pid{40}));
  EXPECT_THAT(container("12-ab"), ElementsAre(Pid{30}, Pid{31}));     // a pod's id
  EXPECT_THAT(container("shop-7d9"), ElementsAre(Pid{30}, Pid{31}));  // a pod's name
  EXPECT_TRUE(search().by_container("shop-7d9")->is_named);
  // One process of it says its host name: all of its container are meant.
  host[20].host_name = "frontend";
  EXPECT_THAT(container("frontend"), ElementsAre(Pid{20}, Pid{21}));
}

// A host name is what a process says of itself: it must not take the place of an id.
TEST_F(ProcessSearchTest, AHostNameIsNotTakenForAnId) {
  host[12].host_name = "3fa9";
  EXPECT_THAT(container("3fa9"), ElementsAre(Pid{20}, Pid{21}));
}

TEST_F(ProcessSearchTest, ListsTheContainersThatThereAre) {
  host[31].host_name = "a\033[2J";
  const Error error = search().by_container("blog").error();
  EXPECT_EQ(error.message,
            "--container blog: no such container; there are 3fa900000000, 3fb111111111 (shop-7d9), 77 "
            "(a[2J), farm");
  EXPECT_THAT(error.hint, HasSubstr("docker ps"));
  host.erase(host.find(20), host.end());
  EXPECT_THAT(search().by_container("blog").error().message, HasSubstr("no container is seen from here"));
}

TEST(ContainerNames, AreInThePathsOfControlGroups) {
  EXPECT_THAT(container_names_in("/lxc.payload.web/system.slice/x.service"), ElementsAre("web"));
  EXPECT_THAT(container_names_in("/lxc/web"), ElementsAre("web"));
  EXPECT_THAT(container_names_in("/machine.slice/machine-web\\x2d1.scope/payload"), ElementsAre("web-1"));
  EXPECT_THAT(container_names_in("/machine.slice/systemd-nspawn@web.service/payload"), ElementsAre("web"));
  EXPECT_THAT(
      container_names_in("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34.slice/x"),
      ElementsAre("12ab-34"));
  for (const char* path : {"", "/", "/user.slice/user-0.slice", "/system.slice/nginx.service",
                           "/lxc.payload.", "/machine-.scope", "/pod", "//"})
    EXPECT_THAT(container_names_in(path), IsEmpty()) << path;
}

TEST(ProcessSearchOfThisHost, DoesNotFindTheCaller) {
  const ProcessSearch here;
  EXPECT_THAT(here.by_number(::getpid()).error().message, HasSubstr("that is ddprof itself"));
  EXPECT_TRUE(here.by_number(::getppid()).ok());
  std::thread([&] { EXPECT_FALSE(here.by_number(::gettid()).ok()); }).join();
}

}  // namespace
}  // namespace ddprof
