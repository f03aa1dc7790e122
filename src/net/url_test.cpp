#include "net/url.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(Url, IsTakenApart) {
  const auto url = Url::parse("https://example.org:8443/a/b?c=d#part");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->is_tls);
  EXPECT_EQ(url->host, "example.org");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d");
  EXPECT_EQ(url->authority(), "example.org:8443");
}

TEST(Url, HasTheUsualPorts) {
  EXPECT_EQ(Url::parse("http://a")->port, 80);
  EXPECT_EQ(Url::parse("https://a")->port, 443);
  EXPECT_EQ(Url::parse("http://a")->target, "/");
  EXPECT_EQ(Url::parse("http://a?b")->target, "/?b");
  EXPECT_EQ(Url::parse("http://[::1]:80/x")->host, "::1");
  EXPECT_EQ(Url::parse("http://[::1]:81/x")->text(), "http://[::1]:81/x");
}

TEST(Url, IsRefusedWhenItCouldBreakARequest) {
  for (const char* text :
       {"", "http://", "ftp://a/", "file:///etc/passwd", "http://a:0/", "http://a:65536/", "http://a:x/",
        "http://a b/", "http://a/b c", "http://a/b\r\nHost: c", "http://[::1/", "http://[/]/",
        "http://[a%b]/", "http://[::1]x80/", "http://name:secret@host/", "http:/a", "http://a:/"}) {
    EXPECT_FALSE(Url::parse(text).ok()) << text;
  }
  EXPECT_EQ(Url::parse("http://name:secret@host/").error().message.find("secret"), std::string::npos);
  EXPECT_FALSE(Url::parse("http://a/" + std::string(10000, 'x')).ok());
}

TEST(Url, FollowsRedirections) {
  const Url here = *Url::parse("http://host:81/a/b?c");
  EXPECT_EQ(here.follow("https://other/x")->text(), "https://other/x");
  EXPECT_EQ(here.follow("//other/x")->text(), "http://other/x");
  EXPECT_EQ(here.follow("/x")->text(), "http://host:81/x");
  EXPECT_EQ(here.follow("x")->text(), "http://host:81/a/x");
  EXPECT_EQ(here.follow("x/y:z")->text(), "http://host:81/a/x/y:z");
  EXPECT_FALSE(here.follow("file:///etc/passwd").ok());
}

}  // namespace
}  // namespace ddprof
