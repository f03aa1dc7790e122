#include "export/addresses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CollectorUrl, LosesTheSlashAtItsEnd) {
  for (const char* text : {"http://collector:4318", "http://collector:4318/", "http://collector:4318//"})
    EXPECT_EQ(parse_base_url(text).value(), "http://collector:4318") << text;
  EXPECT_EQ(parse_base_url("https://gateway/otlp/").value(), "https://gateway/otlp");
}

TEST(CollectorUrl, IsNotSomethingElse) {
  for (const char* text : {"", "collector:4318", "ftp://collector", "grpc://collector:4317", "http://"})
    EXPECT_FALSE(parse_base_url(text).ok()) << text;
}

TEST(CollectorUrl, IsRefusedWithoutShowingASecret) {
  const auto user = parse_base_url("http://me:secret@collector");
  ASSERT_FALSE(user.ok());
  EXPECT_THAT(user.error().message, Not(HasSubstr("secret")));
  const auto query = parse_base_url("http://collector/?token=secret");
  ASSERT_FALSE(query.ok());
  EXPECT_THAT(query.error().message, Not(HasSubstr("secret")));
}

TEST(CollectorUrl, IsShownWithoutItsQuery) {
  EXPECT_EQ(without_query("http://a/b?token=secret"), "http://a/b");
  EXPECT_EQ(without_query("http://a/b"), "http://a/b");
}

}  // namespace
}  // namespace ddprof
