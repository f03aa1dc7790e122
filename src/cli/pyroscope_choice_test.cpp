#include "cli/option_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/show_config.hpp"
#include "export/peers.hpp"

namespace ddprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(PyroscopeChoice, IsWhatSomebodyNamed) {
  EXPECT_EQ(chosen_pyroscope(parsed({"x"})), std::nullopt);
  EXPECT_EQ(chosen_pyroscope(parsed({"--pyroscope-url", "http://p:4040/", "x"})), "http://p:4040");
  EXPECT_EQ(chosen_pyroscope(parsed({"--pyroscope-url", "http://p:4040", "--do-export=false", "x"})),
            std::nullopt);
}

TEST(PyroscopeChoice, RefusesAnAddressThatWasTypedWrongAndLeavesAloneThatOfOthers) {
  EXPECT_THAT(failure({"--pyroscope-url", "p:4040", "x"}).message,
              HasSubstr("--pyroscope-url: read URL p:4040"));
  EXPECT_THAT(failure({"--pyroscope-url", "http://me:secret@p", "x"}).message, Not(HasSubstr("secret")));
  const Options options =
      OptionFixture{.variables = {{"PYROSCOPE_SERVER_ADDRESS", "http://me:secret@p"}}}.parsed({"x"});
  EXPECT_EQ(chosen_pyroscope(options), std::nullopt);
  EXPECT_THAT(options.notices,
              Contains(AllOf(HasSubstr("PYROSCOPE_SERVER_ADDRESS is left alone"), Not(HasSubstr("secret")))));
}

TEST(PyroscopeChoice, NamesTheServiceAndItsTags) {
  const Options options = parsed({"--pyroscope-url", "http://p:4040", "-S", "shop", "-E", "prod", "-V", "1.2",
                                  "-T", "team:a b,x-y:1", "x"});
  const Batch batch = Batch::of({}, 0);
  const auto request = pyroscope_peer_of("http://p:4040", options, "x", {}).pack(batch).at(0);
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(request->query, testing::StartsWith("name=shop%7Benv%3Dprod%2Cversion%3D1.2%2Chost%3D"));
  EXPECT_THAT(request->query, HasSubstr("%2Cteam%3Da%20b%2Cx_y%3D1%7D&from="));
}

TEST(PyroscopeChoice, ShowsNoPassword) {
  const Options options = OptionFixture{.variables = {{"PYROSCOPE_SERVER_ADDRESS", "http://p:4040"},
                                                      {"PYROSCOPE_BASIC_AUTH_USER", "me"},
                                                      {"PYROSCOPE_BASIC_AUTH_PASSWORD", "topsecret"}}}
                              .parsed({"x"});
  EXPECT_THAT(show_config(options), Not(HasSubstr("secret")));
  EXPECT_EQ(pyroscope_peer_of("http://p:4040", options, "x", {}).headers.at(0).first, "Authorization");
}

}  // namespace
}  // namespace ddprof
