#include "export/datadog_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string joined(std::string_view text) {
  DatadogTags tags;
  tags.add_all(text);
  return tags.joined();
}

TEST(DatadogTags, SplitsAtCommasOrElseAtSpaces) {
  EXPECT_EQ(joined("team:a,owner:me and you"), "team:a,owner:me and you");
  EXPECT_EQ(joined("team:a owner:me"), "team:a,owner:me");
  EXPECT_EQ(joined(" team:a , ,, url:http://x "), "team:a,url:http://x");
  EXPECT_EQ(joined("alone"), "alone");
  EXPECT_EQ(joined(""), "");
}

TEST(DatadogTags, RefusesWhatCannotBeATag) {
  DatadogTags tags;
  EXPECT_THAT(tags.add_all("good:1,:value,key:,7up:no,_x:y"),
              ElementsAre(":value", "key:", "7up:no", "_x:y"));
  EXPECT_EQ(tags.joined(), "good:1");
}

TEST(DatadogTags, KeepsTheFirstOfAKey) {
  DatadogTags tags;
  tags.add("service", "shop");
  tags.add("env", "");
  EXPECT_THAT(tags.add_all("service:other,env:prod,env:test"), IsEmpty());
  EXPECT_EQ(tags.joined(), "service:shop,env:prod");
}

TEST(DatadogTags, KeepsEachTagInOnePiece) {
  DatadogTags tags;
  tags.add("version", "1,2\n3");
  tags.add("env", "prod::");
  tags.add("host", std::string(195, 'h') + "ü");  // ends in the middle of it
  EXPECT_THAT(tags.list(), ElementsAre("version:1_2_3", "env:prod", "host:" + std::string(195, 'h')));
}

TEST(DatadogTags, HaveTwoHundredBytesAtMost) {
  DatadogTags tags;
  tags.add("a", std::string(198, 'x'));
  tags.add("b", std::string(199, 'x'));
  tags.add("c", std::string(196, 'x') + "ü");  // which ends with the tag
  EXPECT_THAT(tags.list(), ElementsAre("a:" + std::string(198, 'x'), "b:" + std::string(198, 'x'),
                                       "c:" + std::string(196, 'x') + "ü"));
}

TEST(DatadogTags, BeginWithALetter) {
  EXPECT_EQ(joined("a:1,z:1,A:1,Z:1"), "a:1,z:1,A:1,Z:1");
  for (const char* text : {"`:1", "{:1", "@:1", "[:1"}) EXPECT_EQ(joined(text), "") << text;
}

}  // namespace
}  // namespace ddprof
