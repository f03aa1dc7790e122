#include "net/http_text.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(PercentCode, EncodesWhatCouldMeanSomethingInAUrl) {
  EXPECT_EQ(percent_encoded("checkout{env=prod,a=b c}"), "checkout%7Benv%3Dprod%2Ca%3Db%20c%7D");
  EXPECT_EQ(percent_encoded("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(percent_encoded("\xc3\xa4%"), "%C3%A4%25");
}

TEST(PercentCode, DecodesWhatItEncoded) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
  EXPECT_EQ(percent_decoded("a%2cb%3D"), "a,b=");
}

TEST(PercentCode, RefusesAPercentSignWithoutTwoDigits) {
  for (const char* text : {"%", "%2", "a%", "%g0", "%0g", "%-1", "% 1"})
    EXPECT_EQ(percent_decoded(text), std::nullopt) << text;
}

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
