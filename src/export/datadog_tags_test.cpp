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

}  // namespace
}  // namespace ddprof
