#include "cli/report_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/json_writer.hpp"
#include "cli/report_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Without the white space, which is for people.
std::string compact(const std::string& json) {
  std::string text;
  bool is_quoted = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"' && (at == 0 || json[at - 1] != '\\')) is_quoted = !is_quoted;
    if (is_quoted || (json[at] != ' ' && json[at] != '\n')) text += json[at];
  }
  return text;
}

TEST(JsonWriter, WritesNestedValues) {
  JsonWriter json;
  json.begin_object();
  json.member("number", std::int64_t{-5});
  json.key("list");
  json.begin_array();
  json.text("a");
  json.begin_object();
  json.end_object();
  json.flag(true);
  json.end_array();
  json.member("text", "x");
  json.end_object();
  EXPECT_EQ(compact(std::move(json).finish()), R"({"number":-5,"list":["a",{},true],"text":"x"})");
}

TEST(JsonWriter, EscapesWhatJsonCannotHold) {
  JsonWriter json;
  json.text("a\"b\\c\n\x01\xff");
  EXPECT_EQ(std::move(json).finish(), "\"a\\\"b\\\\c\\u000a\\u0001\xef\xbf\xbd\"\n");
}

TEST(ReportJson, HasTheHeadline) {
  ReportFixture fixture;
  fixture.add("main;work@a.cc:7", 2000).add("main", 100);
  const std::string json = compact(fixture.render({.json = true}));
  EXPECT_THAT(json,
              HasSubstr(R"("headline":{"text":"95 % of CPU in work (a.cc:7), called by main","kind":"one")"));
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("functions":[{"name":"work","module":"app","file":"a.cc","line":7,"total":2000000000,"own":true)"));
}

TEST(ReportJson, HasTheSumsOfTheReportAsNumbers) {
  ReportFixture fixture;
  fixture.add("main;work", 600, 7, "server", 70).add("main", 400, 8, "server", 70);
  const std::string json = compact(fixture.render({.title = "cpu.pb.gz", .json = true}));
  EXPECT_THAT(json, HasSubstr(R"("title":"cpu.pb.gz","type":"cpu","unit":"nanoseconds","total":1000000000)"));
  EXPECT_THAT(json, HasSubstr(R"("samples":100,)"));
  EXPECT_THAT(
      json,
      HasSubstr(R"("functions_by_self":[{"name":"work","module":"app","self":600000000,"total":600000000},)"
                R"({"name":"main","module":"app","self":400000000,"total":1000000000}])"));
  EXPECT_THAT(json, HasSubstr(R"("functions_by_total":[{"name":"main")"));
  EXPECT_THAT(json, HasSubstr(R"("paths":[{"depth":0,"total":1000000000,"frames":["main"]},)"
                              R"({"depth":1,"total":600000000,"frames":["work"]}])"));
  EXPECT_THAT(
      json,
      HasSubstr(R"({"name":"worker","id":"7","process":"server","process_id":"70","total":600000000})"));
  EXPECT_THAT(json, HasSubstr(R"("processes":[{"name":"server","id":"70","total":1000000000}])"));
  EXPECT_THAT(json, HasSubstr(R"("missed":[])"));
}

TEST(ReportJson, HasTheSectionsThatAreAskedFor) {
  ReportFixture fixture;
  fixture.add("main@a.cc:3", 100);
  const std::string modules = compact(fixture.render({.json = true, .modules = true}));
  EXPECT_THAT(
      modules,
      HasSubstr(
          R"("modules":[{"path":"/usr/bin/app","build_id":"","names":"","self":100000000,"total":100000000}])"));
  EXPECT_THAT(modules, Not(HasSubstr("functions_by_self")));
  const std::string lines = compact(fixture.render({.json = true, .lines = true}));
  EXPECT_THAT(
      lines,
      HasSubstr(
          R"("lines":[{"file":"a.cc","line":3,"function":"main","self":100000000,"total":100000000}])"));
  const std::string annotated = compact(fixture.render({.json = true, .annotate = "main"}));
  EXPECT_THAT(
      annotated,
      HasSubstr(R"("annotations":[{"function":"main","module":"app","self":100000000,"total":100000000,)"
                R"("source":[{"file":"a.cc","problem":"the source is not here)"));
  EXPECT_THAT(annotated,
              HasSubstr(R"("rows":[{"line":3,"self":100000000,"total":100000000,"text":"","place":""}])"));
}

}  // namespace
}  // namespace ddprof
