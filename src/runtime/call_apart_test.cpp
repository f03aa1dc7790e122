#include "runtime/call_apart.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

TEST(CallApart, HandsTheResultBack) {
  const pid_t self = ::getpid();
  const auto done = call_apart(10s, [self]() -> Result<void> {
    if (::getpid() != self) return {};
    return make_error(ErrorCode::failed, "the same process");
  });
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->ok());
  const auto failed = call_apart(10s, []() -> Result<void> {
    return with_hint(make_error(ErrorCode::not_found, "open it: gone"), "look elsewhere");
  });
  ASSERT_TRUE(failed.has_value());
  ASSERT_FALSE(failed->ok());
  EXPECT_EQ(failed->error().code, ErrorCode::not_found);
  EXPECT_EQ(failed->error().message, "open it: gone");
  EXPECT_EQ(failed->error().hint, "look elsewhere");
}

TEST(CallApart, LeavesBehindWhatHangs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto never = call_apart(50ms, []() -> Result<void> {
    ::sleep(5);  // then it ends by itself
    return {};
  });
  EXPECT_FALSE(never.has_value());
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "who reads a pipe of ours does not wait for it";
  ::close(ends[0]);
}

TEST(CallApart, SaysWhenTheProcessDies) {
  const auto died = call_apart(10s, []() -> Result<void> { ::_exit(1); });
  ASSERT_TRUE(died.has_value());
  EXPECT_FALSE(died->ok());
}

}  // namespace
}  // namespace ddprof
