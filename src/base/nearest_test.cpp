#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace ddprof {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"frequency", "period", "sCPU", "preset"};

TEST(Nearest, CountsEachKindOfMistakeOnce) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("frequncy", "frequency"), 1U);    // left out
  EXPECT_EQ(edit_distance("freequency", "frequency"), 1U);  // doubled
  EXPECT_EQ(edit_distance("frequemcy", "frequency"), 1U);   // replaced
  EXPECT_EQ(edit_distance("freqeuncy", "frequency"), 1U);   // swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, IgnoresCase) { EXPECT_EQ(nearest("scpu", kWords), "sCPU"); }

TEST(Nearest, FindsTheClosestCandidate) {
  EXPECT_EQ(nearest("frequncy", kWords), "frequency");
  EXPECT_EQ(nearest("preiod", kWords), "period");
}

TEST(Nearest, StaysSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest("output", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(1000, 'p'), kWords), "");
}

TEST(Nearest, PrefersTheEarlierOfTwoEquallyCloseCandidates) {
  constexpr std::array<std::string_view, 2> kTwins = {"sPFMAJ", "sPFMIN"};
  EXPECT_EQ(nearest("sPFMxx", kTwins), "sPFMAJ");
}

TEST(Nearest, EndsAnErrorWithAQuestionOrNothing) {
  EXPECT_EQ(did_you_mean("frequncy", kWords), "; did you mean frequency?");
  EXPECT_EQ(did_you_mean("output", kWords), "");
}

}  // namespace
}  // namespace ddprof
