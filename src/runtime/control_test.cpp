#include "runtime/control.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    program_ = UniqueFd(ends[0]);
    profiler_ = UniqueFd(ends[1]);
  }
  [[nodiscard]] Control control() const { return {profiler_.get(), profiler_.get()}; }
  void send(std::string_view packet) const {
    EXPECT_EQ(::send(program_.get(), packet.data(), packet.size(), 0), static_cast<ssize_t>(packet.size()));
  }
  [[nodiscard]] std::string receive() const {
    std::string packet(2 * DDPROF_CONTROL_BYTES, '\0');
    packet.resize(static_cast<std::size_t>(
        std::max<ssize_t>(0, ::recv(program_.get(), packet.data(), packet.size(), MSG_DONTWAIT))));
    return packet;
  }

  UniqueFd program_, profiler_;
};

TEST_F(ControlTest, CommandsComeOneByOne) {
  EXPECT_EQ(control().take(), std::nullopt);
  send("f");
  send("s");
  EXPECT_EQ(control().take(), DDPROF_CONTROL_FLUSH);
  EXPECT_EQ(control().take(), DDPROF_CONTROL_STOP);
  EXPECT_EQ(control().take(), std::nullopt);
}

TEST_F(ControlTest, WhatIsNoCommandIsPassedOver) {
  send("?");
  send("f");
  EXPECT_EQ(control().take(), DDPROF_CONTROL_FLUSH);
}

TEST_F(ControlTest, TheEndOfTheProgramStops) {
  program_.reset();
  EXPECT_EQ(control().take(), DDPROF_CONTROL_STOP);
  control().say(DDPROF_CONTROL_ENDED);  // no SIGPIPE
}

TEST_F(ControlTest, AnswersHaveTheirTextsBehindZeroBytes) {
  control().say_ready("/proc/1/fd/3:a:b", {"one", "two"});
  EXPECT_EQ(receive(), std::string("\1r\0/proc/1/fd/3:a:b\0one\0two", 27));
  control().say_ready("", {});
  EXPECT_EQ(receive(), std::string("\1r\0", 3));
  control().say(DDPROF_CONTROL_FLUSHED);
  EXPECT_EQ(receive(), "\1f");
  control().say(DDPROF_CONTROL_FAILED, "no");
  EXPECT_EQ(receive(), std::string("\1x\0no", 5));
}

TEST_F(ControlTest, LongTextsAreCut) {
  control().say(DDPROF_CONTROL_FAILED, std::string(100'000, 'x'));
  EXPECT_EQ(receive().size(), DDPROF_CONTROL_BYTES);
}

}  // namespace
}  // namespace ddprof
