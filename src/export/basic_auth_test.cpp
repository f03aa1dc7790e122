#include "export/basic_auth.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

// The examples of RFC 7617, and lengths of each remainder, as coreutils' base64 writes them.
TEST(BasicAuth, IsBase64OfUserAndPassword) {
  EXPECT_EQ(basic_auth("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(basic_auth("test", "123\xc2\xa3"), "Basic dGVzdDoxMjPCow==");
  EXPECT_EQ(basic_auth("", ""), "Basic Og==");
  EXPECT_EQ(basic_auth("a", ""), "Basic YTo=");
  EXPECT_EQ(basic_auth("a", "b"), "Basic YTpi");
}

}  // namespace
}  // namespace ddprof
