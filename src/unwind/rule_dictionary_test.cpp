#include "unwind/rule_dictionary.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

ddprof_unwind_rule numbered(int number) { return {DDPROF_CFA_SP, 0, 0, number}; }

TEST(RuleDictionary, KnowsTheTwoFixedRules) {
  RuleDictionary dictionary;
  EXPECT_EQ(dictionary[RuleIndex::gap].cfa, DDPROF_CFA_GAP);
  EXPECT_EQ(dictionary[RuleIndex::unsupported].cfa, DDPROF_CFA_UNSUPPORTED);
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_GAP, 0, 0, 0}), RuleIndex::gap);
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_UNSUPPORTED, 0, 0, 0}), RuleIndex::unsupported);
}

TEST(RuleDictionary, GivesEqualRulesOneIndex) {
  RuleDictionary dictionary;
  std::vector<RuleIndex> first;
  for (int i = 0; i < 5000; ++i) first.push_back(dictionary.intern(numbered(i)));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(dictionary.intern(numbered(i)), first[static_cast<std::size_t>(i)]);
    EXPECT_EQ(dictionary[first[static_cast<std::size_t>(i)]].cfa_offset, i);
  }
  EXPECT_EQ(dictionary.size(), 5002U);
}

TEST(RuleDictionary, RefusesAndCountsWhenFull) {
  RuleDictionary dictionary;
  const ddprof_unwind_rule* before = dictionary.rules().data();
  for (int i = 0; i < DDPROF_MAX_UNWIND_RULES - 2; ++i)
    ASSERT_NE(dictionary.intern(numbered(i)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.refusals(), 0U);
  EXPECT_EQ(dictionary.intern(numbered(-1)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.intern(numbered(-1)), RuleIndex::unsupported);
  EXPECT_EQ(dictionary.refusals(), 2U);
  EXPECT_EQ(dictionary[dictionary.intern(numbered(77))].cfa_offset, 77);
  EXPECT_EQ(dictionary.size(), std::size_t{DDPROF_MAX_UNWIND_RULES});
  EXPECT_EQ(dictionary.rules().data(), before) << "rules never move";
}

TEST(RuleDictionary, NoFileCanFillIt) {
  RuleDictionary dictionary;
  int offset = 0;
  for (int file = 0; file < 8; ++file) {
    dictionary.start_file();
    for (int i = 0; i < DDPROF_MAX_UNWIND_RULES; ++i) dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset});
  }
  dictionary.start_generated_code();
  EXPECT_EQ(dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset}), RuleIndex::unsupported);
  dictionary.start_file();
  for (int i = 0; i < 100; ++i)
    EXPECT_NE(dictionary.intern({DDPROF_CFA_SP, 0, 0, ++offset}), RuleIndex::unsupported);
}

}  // namespace
}  // namespace ddprof
