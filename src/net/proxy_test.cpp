#include "net/proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;
using Variables = std::map<std::string, std::string>;

Result<std::optional<Proxy>> choose(const std::string& url, const Variables& variables) {
  return choose_proxy(*Url::parse(url), [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

// The proxy as messages name it; "none" for none.
std::string chosen(const std::string& url, const Variables& variables) {
  const auto proxy = choose(url, variables);
  if (!proxy) return proxy.error().message;
  return *proxy ? (*proxy)->text() : "none";
}

TEST(Proxy, IsTheOneOfTheScheme) {
  const Variables both = {{"https_proxy", "http://a:1"}, {"http_proxy", "http://b:2"}};
  EXPECT_EQ(chosen("https://host/", both), "http://a:1");
  EXPECT_EQ(chosen("http://host/", both), "http://b:2");
  EXPECT_EQ(chosen("https://host/", {}), "none");
  EXPECT_EQ(chosen("http://host/", {{"https_proxy", "http://a:1"}}), "none");
}

TEST(Proxy, HasItsVariablesInTheOrderOfCurl) {
  EXPECT_EQ(chosen("https://host/", {{"HTTPS_PROXY", "upper:1"}, {"https_proxy", "lower:1"}}),
            "http://lower:1");
  EXPECT_EQ(chosen("https://host/", {{"HTTPS_PROXY", "one:1"}, {"ALL_PROXY", "all:1"}}), "http://one:1");
  EXPECT_EQ(chosen("https://host/", {{"HTTPS_PROXY", ""}, {"ALL_PROXY", "all:1"}}), "http://all:1");
  EXPECT_EQ(chosen("http://host/", {{"all_proxy", "all:1"}}), "http://all:1");
}

TEST(Proxy, IsNeverTakenFromAHeaderOfCgi) {
  EXPECT_EQ(chosen("http://host/", {{"HTTP_PROXY", "evil:1"}}), "none");
}

TEST(Proxy, IsNotAskedForThisMachineOrForExceptions) {
  for (const char* url : {"http://localhost:4318/", "http://127.0.0.2/", "https://[::1]/"})
    EXPECT_EQ(chosen(url, {{"all_proxy", "p:1"}}), "none") << url;
  EXPECT_EQ(chosen("https://a.example/", {{"all_proxy", "p:1"}, {"NO_PROXY", "example"}}), "none");
  EXPECT_EQ(chosen("https://a.example/", {{"all_proxy", "p:1"}, {"no_proxy", "x"}, {"NO_PROXY", "*"}}),
            "http://p:1");
}

TEST(Proxy, MayHaveManyForms) {
  const auto text = [](const char* value) { return chosen("https://host/", {{"HTTPS_PROXY", value}}); };
  EXPECT_EQ(text("p"), "http://p");
  EXPECT_EQ(text("p:3128/"), "http://p:3128");
  EXPECT_EQ(text("HTTP://p:3128"), "http://p:3128");
  EXPECT_EQ(text("https://p"), "https://p");
  EXPECT_EQ(text("http://[fd00::1]:3128"), "http://[fd00::1]:3128");
  EXPECT_EQ(choose("https://host/", {{"HTTPS_PROXY", "https://p"}}).value()->port, 443);
}

// The pairs are those of `printf %s user:password | base64`.
TEST(Proxy, GetsUserAndPassword) {
  const auto authorization = [](const char* value) {
    return choose("https://host/", {{"HTTPS_PROXY", value}}).value()->authorization;
  };
  EXPECT_EQ(authorization("http://me:secret@p:1"), "Basic bWU6c2VjcmV0");
  EXPECT_EQ(authorization("me@p:1"), "Basic bWU6");
  EXPECT_EQ(authorization("http://me:p%40ss%3a%zz@p:1"), "Basic bWU6cEBzczoleno=");
  EXPECT_EQ(authorization("http://me:a@b@p:1"), "Basic bWU6YUBi");
  EXPECT_EQ(authorization("http://me:a/b@p:1"), "Basic bWU6YS9i");
  EXPECT_EQ(authorization("http://p:1"), "");
}

TEST(Proxy, IsRefusedWithoutShowingThePassword) {
  for (const char* value :
       {"http://me:secret@", "http://me:secret@p:port", "ftp://me:secret@p", "socks5://me:secret@p:1",
        "http://me:secret@p/path", "http://me:secret@p q", "://secret"}) {
    const auto proxy = choose("https://host/", {{"HTTPS_PROXY", value}});
    ASSERT_FALSE(proxy.ok()) << value;
    EXPECT_EQ(proxy.error().code, ErrorCode::permission_denied);
    EXPECT_THAT(proxy.error().message, HasSubstr("HTTPS_PROXY: "));
    EXPECT_THAT(proxy.error().message + proxy.error().hint, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(chosen("https://host/", {{"ALL_PROXY", "socks5h://p:1"}}), HasSubstr("SOCKS"));
}

TEST(Proxy, ReadsTheRealEnvironment) {
  EXPECT_EQ(environment_variable("DDPROF_NOBODY_SETS_THIS"), "");
  EXPECT_NE(environment_variable("PATH"), "");
}

}  // namespace
}  // namespace ddprof
