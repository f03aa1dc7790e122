#include "process/service_name.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "base/read_file.hpp"

namespace ddprof {
namespace {

using namespace std::string_literals;

TEST(ServiceName, TheVariableOfDatadogWinsOverThoseOfOpenTelemetry) {
  const std::string all =
      "OTEL_RESOURCE_ATTRIBUTES=service.name=third\0OTEL_SERVICE_NAME=second\0DD_SERVICE=first\0"s;
  EXPECT_EQ(service_in_environment(all), "first");
  EXPECT_EQ(
      service_in_environment("OTEL_RESOURCE_ATTRIBUTES=service.name=third\0OTEL_SERVICE_NAME=second\0"s),
      "second");
}

TEST(ServiceName, IsFoundAmongResourceAttributes) {
  EXPECT_EQ(service_in_environment(
                "A=b\0OTEL_RESOURCE_ATTRIBUTES=deployment=eu, service.name=shop,service.version=2\0"s),
            "shop");
  EXPECT_EQ(service_in_environment("OTEL_RESOURCE_ATTRIBUTES=service.name.x=shop,other=1\0"s), "");
}

TEST(ServiceName, VariablesAreThoseThatTheProcessWasStartedWith) {
  ::setenv("DDPROF_TEST_SET_LATER", "x", 1);
  EXPECT_EQ(read_variable(Pid{::getpid()}, "DDPROF_TEST_SET_LATER"), "");
  EXPECT_EQ(read_variable(Pid{0x7fffffff}, "PATH"), "");
  const char* path = std::getenv("PATH");
  EXPECT_EQ(read_variable(Pid{::getpid()}, "PATH"), path != nullptr ? path : "");
}

TEST(ServiceName, OnlyWholeNamesOfVariablesCount) {
  EXPECT_EQ(service_in_environment("DD_SERVICE_MAPPING=a:b\0XDD_SERVICE=c\0DD_SERVICE\0"s), "");
  EXPECT_EQ(service_in_environment(""), "");
  EXPECT_EQ(service_in_environment("\0\0=\0"s), "");
}

TEST(ServiceName, AnEmptyVariableIsNone) {
  EXPECT_EQ(service_in_environment("DD_SERVICE=\0OTEL_SERVICE_NAME=shop\0"s), "shop");
}

TEST(ServiceName, WhatIsNotFitToBeShownIsLeftOutOrCut) {
  EXPECT_EQ(service_in_environment("DD_SERVICE=a\x1b[2Jb\nc\0"s), "a[2Jbc");
  EXPECT_EQ(service_in_environment("DD_SERVICE=" + std::string(5000, 'x')).size(), 200U);
  const std::string cut = service_in_environment("DD_SERVICE=" + std::string(199, 'x') + "\u00e9\u00e9");
  EXPECT_EQ(cut, std::string(199, 'x'));
}

TEST(ServiceName, AnExecutableIsItsFilesName) {
  EXPECT_EQ(executable_in_link("/usr/bin/redis-server"), "redis-server");
  EXPECT_EQ(executable_in_link("/tmp/a b (deleted)"), "a b");
  EXPECT_EQ(executable_in_link(""), "");
}

// A child that was executed with this environment and waits for its end.
class ExecutedChild {
 public:
  explicit ExecutedChild(const char* variable) {
    std::array<int, 2> started{};
    EXPECT_EQ(::pipe(started.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(started[1], STDOUT_FILENO);
      const std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                                              const_cast<char*>("echo; exec sleep 60"), nullptr};
      const std::array<char*, 2> environment = {const_cast<char*>(variable), nullptr};
      ::execve("/bin/sh", arguments.data(), environment.data());
      ::_exit(1);
    }
    char ready = 0;
    EXPECT_EQ(::read(started[0], &ready, 1), 1);
    ::close(started[0]);
    ::close(started[1]);
    while (!is_executed()) std::this_thread::yield();
  }
  ~ExecutedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ExecutedChild(const ExecutedChild&) = delete;
  ExecutedChild& operator=(const ExecutedChild&) = delete;

  [[nodiscard]] Pid pid() const { return Pid{pid_}; }

 private:
  // In the midst of an exec there are neither arguments nor an environment.
  [[nodiscard]] bool is_executed() const {
    const auto arguments = read_file(fmt::format("/proc/{}/cmdline", pid_));
    return !arguments || arguments->starts_with("sleep");
  }

  pid_t pid_ = -1;
};

TEST(ServiceName, IsReadFromTheEnvironmentOfALivingProcess) {
  const ExecutedChild child("DD_SERVICE=checkout");
  ForeignMemory memory;
  const auto service = read_service_name(child.pid(), nullptr, memory);
  EXPECT_EQ(service->name, "checkout");
  EXPECT_TRUE(service->is_configured);
}

TEST(ServiceName, WithoutOneItIsTheExecutable) {
  ForeignMemory memory;
  const auto service = read_service_name(Pid{::getpid()}, nullptr, memory);
  EXPECT_EQ(service->name, "process_test");
  EXPECT_FALSE(service->is_configured);
}

TEST(ServiceName, AProcessThatIsGoneKeepsWhatItInherited) {
  const Pid nobody{1 << 23};
  ForeignMemory memory;
  const auto configured = std::make_shared<const ServiceName>(ServiceName{"shop", true});
  EXPECT_EQ(read_service_name(nobody, configured, memory)->name, "shop");
  const auto by_file = std::make_shared<const ServiceName>(ServiceName{"sh", false});
  EXPECT_EQ(read_service_name(nobody, by_file, memory)->name, "");  // an executable's name ends with its exec
}

}  // namespace
}  // namespace ddprof
