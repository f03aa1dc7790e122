#include "export/otlp_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(OtlpHeaders, ArePairsWithPercentSigns) {
  EXPECT_EQ(parse_otlp_headers("api-key=abc").value(), (HttpHeaders{{"api-key", "abc"}}));
  EXPECT_EQ(parse_otlp_headers(" Authorization = Basic%20dTpw , x=a%2Cb=c,,empty=").value(),
            (HttpHeaders{{"Authorization", "Basic dTpw"}, {"x", "a,b=c"}, {"empty", ""}}));
  EXPECT_TRUE(parse_otlp_headers("").value().empty());
}

TEST(OtlpHeaders, CannotBecomeHeadersOfTheirOwn) {
  for (const char* text : {"secret", "=secret", "a=secret%", "a b=secret", "a%0d=secret",
                           "a=x%0D%0AHost:secret", "a=secret%00", "a:=secret"}) {
    const auto headers = parse_otlp_headers(text);
    ASSERT_FALSE(headers.ok()) << text;
    EXPECT_THAT(headers.error().message, testing::Not(testing::HasSubstr("secret"))) << text;
  }
}

TEST(OtlpHeaders, NamesAreTokens) {
  EXPECT_EQ(parse_otlp_headers("azAZ09!#$&'*+-.^_`|~=v").value().front().first, "azAZ09!#$&'*+-.^_`|~");
  for (const char* text : {"a{=v", "a@=v", "a[=v", "a/=v", "a:=v", "a(=v"})
    EXPECT_FALSE(parse_otlp_headers(text).ok()) << text;
}

TEST(OtlpHeaders, ValuesHaveNoControls) {
  EXPECT_EQ(parse_otlp_headers("a=%20%09~%80").value().front().second, " \t~\x80");
  for (const char* text : {"a=x%1f", "a=x%7f"}) EXPECT_FALSE(parse_otlp_headers(text).ok()) << text;
}

}  // namespace
}  // namespace ddprof
