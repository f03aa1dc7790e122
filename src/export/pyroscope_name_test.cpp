#include "export/pyroscope_peer.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(PyroscopeName, HasTheApplicationAndItsLabels) {
  EXPECT_EQ(pyroscope_name("shop", {{"env", "prod"}, {"version", "1.2"}, {"team", "a"}}),
            "shop{env=prod,version=1.2,team=a}");
  EXPECT_EQ(pyroscope_name("shop", {}), "shop{}");
}

TEST(PyroscopeName, LeavesOutWhatHasNoValueAndWhatIsThereAlready) {
  EXPECT_EQ(pyroscope_name("shop", {{"env", ""}, {"a.b", "1"}, {"a-b", "2"}}), "shop{a_b=1}");
}

TEST(PyroscopeName, HoldsNothingThatWouldEndAPartOfIt) {
  EXPECT_EQ(pyroscope_name("my {shop}", {{"a=b,c}", "x,y=z}{\"\n"}, {"1st", "v w"}}),
            "my__shop_{a_b_c_=x_y_z____,_1st=v w}");
  EXPECT_EQ(pyroscope_name("", {}), "unknown{}");
  EXPECT_EQ(pyroscope_name("K\xc3\xa4se", {{"k", "K\xc3\xa4se\xff"}}), "K__se{k=K\xc3\xa4se\xef\xbf\xbd}");
}

TEST(PyroscopeName, KeepsValuesWithinTheLimitOfTheServer) {
  const std::string name = pyroscope_name("shop", {{"k", std::string(10'000, 'v')}});
  EXPECT_LE(name.size(), 2048 + std::string("shop{k=}").size());
}

TEST(PyroscopeName, TheApplicationHasTheLettersThatTheServerTakes) {
  EXPECT_EQ(pyroscope_name("azAZ09_./-", {}), "azAZ09_./-{}");
  EXPECT_EQ(pyroscope_name("`{@[:,", {}), "______{}");
  EXPECT_EQ(pyroscope_name("a", {{"k", "\x1f \x7f~"}}), "a{k=_ _~}");
}

}  // namespace
}  // namespace ddprof
