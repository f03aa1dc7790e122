#include "cli/option_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/show_config.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kId = "3fa9" + std::string(60, '0');

ProcessSearch host() {
  return ProcessSearch({.list =
                            [] {
                              std::vector<RunningProcess> list;
                              for (int pid : {12, 34, 56}) list.push_back({.pid = Pid{pid}, .name = "nginx"});
                              return list;
                            },
                        .executable = [](Pid) { return std::string("nginx"); },
                        .confinement =
                            [](Pid pid) {
                              return Confinement{pid == Pid{34} ? kId : "", "/x"};
                            },
                        .host_name = [](Pid pid) { return std::string(pid == Pid{34} ? "web-1" : ""); },
                        .of_task = [](std::int32_t number) -> std::optional<RunningProcess> {
                          if (number != 12 && number != 34 && number != 56) return std::nullopt;
                          return RunningProcess{.pid = Pid{number}};
                        }});
}

AttachChoice choice(const std::vector<const char*>& args) {
  return choose_processes(parsed(args), host()).value();
}

TEST(AttachChoice, TakesListsAndNames) {
  EXPECT_THAT(choice({"-p", "12,34"}).pids, ElementsAre(Pid{12}, Pid{34}));
  EXPECT_THAT(choice({"record", "-p34", "--pid=12,34"}).pids, ElementsAre(Pid{34}, Pid{12}));
  EXPECT_THAT(choice({"-p", "name:nginx"}).pids, ElementsAre(Pid{12}, Pid{34}, Pid{56}));
  EXPECT_THAT(choice({"-p", "56", "-p", "name:ngin?"}).pids, ElementsAre(Pid{56}, Pid{12}, Pid{34}));
  EXPECT_THAT(choice({"--container", "3fa9"}).pids, ElementsAre(Pid{34}));
  EXPECT_EQ(parsed({"-p", "12,34"}).command, Command::attach);
  EXPECT_EQ(parsed({"--container", "web"}).command, Command::attach);
  EXPECT_EQ(parsed({"record", "--container", "web"}).command, Command::record);
}

TEST(AttachChoice, IsCalledByWhatWasTypedWhereThatIsAName) {
  EXPECT_EQ(choice({"-p", "name:nginx"}).name, "nginx");
  EXPECT_EQ(choice({"--container", "web-1"}).name, "web-1");
  // As the first process, which is found later.
  EXPECT_EQ(choice({"-p", "12"}).name, "");
  EXPECT_EQ(choice({"-p", "name:ngin*"}).name, "");
  EXPECT_EQ(choice({"-p", "12", "-p", "name:nginx"}).name, "");
  EXPECT_EQ(choice({"--container", "3fa9"}).name, "");
}

TEST(AttachChoice, NamesTheOneThatDoesNotExist) {
  EXPECT_EQ(choose_processes(parsed({"-p", "12,13"}), host()).error().message,
            "attach to process 13: no such process");
  EXPECT_THAT(choose_processes(parsed({"-p", "name:redis"}), host()).error().message,
              HasSubstr("-p name:redis: no process has that name"));
}

TEST(AttachChoice, WrongValuesAreUsageErrors) {
  for (const char* text :
       {"", "12,", ",12", "12,,34", "12 34", "-12", "0", "1x", "4194305", "99999999999", "nginx", "user:x"})
    EXPECT_THAT(failure({fmt::format("--pid={}", text).c_str()}).message,
                HasSubstr("must be whole numbers from 1 to 4194304, or name:GLOB"))
        << text;
  EXPECT_THAT(failure({"-p", "name:"}).message, HasSubstr("--pid name:: needs a value"));
  EXPECT_THAT(failure({"-p", "name:/(/"}).message, HasSubstr("--pid name:/(/"));
  EXPECT_EQ(failure({"-p", "1", "-g"}).message, "-p and -g: choose one");
  EXPECT_EQ(failure({"--container", "x", "-g"}).message, "--container and -g: choose one");
  EXPECT_EQ(failure({"--container", "x", "-p", "1"}).message, "-p and --container: choose one");
  EXPECT_EQ(failure({"--container", "x", "server"}).message,
            "--container x: a running process is profiled; server cannot be started too");
  EXPECT_THAT(failure({"--no-children", "server"}).message,
              HasSubstr("--children: is for processes that run already"));
}

TEST(AttachChoice, ChildrenAreTakenUnlessTheyAreNotWanted) {
  EXPECT_TRUE(parsed({"-p", "1"}).children);
  EXPECT_FALSE(parsed({"-p", "1", "--no-children"}).children);
  EXPECT_FALSE(parsed({"--children=false", "--container", "x"}).children);
}

TEST(AttachChoice, IsShownAsTyped) {
  EXPECT_THAT(show_config(parsed({"-p", "12,34", "-p", "name:x"})), HasSubstr("-p 12,34 -p name:x\n"));
  EXPECT_THAT(show_config(parsed({"--container", "x"})), HasSubstr("--container x\n"));
}

}  // namespace
}  // namespace ddprof
