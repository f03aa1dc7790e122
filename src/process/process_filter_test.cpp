#include "process/process_filter.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ddprof {
namespace {

FilterFacts redis() {
  return {.name = "redis-server",
          .executable = "redis-check-rdb",
          .user = 33,
          .cgroup = "/kubepods.slice/kubepods-burstable.slice/pod1.scope",
          .container_id = "3fa9c0ffee",
          .service = "cache"};
}

bool matches(const std::string& condition, const FilterFacts& facts = redis()) {
  auto parsed = ProcessCondition::parse(condition);
  EXPECT_TRUE(parsed.ok()) << condition;
  return parsed && parsed->matches(facts);
}

bool admits(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  auto filter = ProcessFilter::parse(include, exclude);
  EXPECT_TRUE(filter.ok());
  return filter && filter->admits(redis());
}

std::string error_of(const std::string& condition) {
  auto filter = ProcessFilter::parse({}, {condition});
  return filter ? "" : filter.error().message;
}

TEST(ProcessCondition, ANameIsAGlobOverTheWholeName) {
  EXPECT_TRUE(matches("name:redis-server"));
  EXPECT_TRUE(matches("name:redis*"));
  EXPECT_FALSE(matches("name:redis"));
  EXPECT_FALSE(matches("name:server"));
}

TEST(ProcessCondition, AnExpressionBetweenSlashesMatchesAnyPart) {
  EXPECT_TRUE(matches("name:/^redis-(server|sentinel)$/"));
  EXPECT_TRUE(matches("name:/server/"));
  EXPECT_FALSE(matches("name:/^server/"));
}

TEST(ProcessCondition, TheExecutableIsANameToo) { EXPECT_TRUE(matches("name:redis-check-*")); }

TEST(ProcessCondition, AStarCrossesTheLevelsOfAControlGroup) {
  EXPECT_TRUE(matches("cgroup:/kubepods*"));
  EXPECT_TRUE(matches("cgroup:*burstable*"));
  EXPECT_FALSE(matches("cgroup:/system.slice*"));
}

TEST(ProcessCondition, AContainerIsTheBeginningOfItsId) {
  EXPECT_TRUE(matches("container:3fa9"));
  EXPECT_FALSE(matches("container:c0ff"));
}

TEST(ProcessCondition, AUserIsANumberOrAName) {
  EXPECT_TRUE(matches("user:33"));
  EXPECT_FALSE(matches("user:3"));
  FilterFacts facts;
  facts.user = 0;
  EXPECT_TRUE(matches("user:root", facts));
}

TEST(ProcessCondition, AServiceIsAGlob) {
  EXPECT_TRUE(matches("service:cach?"));
  EXPECT_FALSE(matches("service:shop"));
}

TEST(ProcessCondition, WhatIsUnknownMatchesNothing) {
  for (const char* condition : {"name:*", "user:0", "cgroup:*", "container:3", "service:*", "name:/x*/"})
    EXPECT_FALSE(matches(condition, {})) << condition;
}

TEST(ProcessFilter, AdmitsWhatIsIncludedAndNotExcluded) {
  EXPECT_TRUE(admits({}, {}));
  EXPECT_TRUE(admits({"name:nginx", "service:cache"}, {}));
  EXPECT_FALSE(admits({"name:nginx"}, {}));
  EXPECT_FALSE(admits({}, {"user:33"}));
  EXPECT_FALSE(admits({"name:redis*"}, {"service:cache"}));
}

TEST(ProcessFilter, SaysWhatIsWrongInOneLine) {
  EXPECT_EQ(
      error_of("redis"),
      "--exclude redis: must be one of name, user, cgroup, container, service, a colon and a value, such as "
      "name:redis*");
  EXPECT_EQ(
      error_of("nam:redis"),
      "--exclude nam:redis: nam: must be one of name, user, cgroup, container, service; did you mean name?");
  EXPECT_EQ(error_of("name:"), "--exclude name:: needs a value behind the colon");
  EXPECT_EQ(error_of("user:no such one"),
            "--exclude user:no such one: no user of that name here; a number works everywhere");
  EXPECT_EQ(error_of("container:redis"),
            "--exclude container:redis: must be the beginning of a container's id");
  EXPECT_NE(error_of("name:/(/").find("regular expression"), std::string::npos);
}

TEST(ProcessFilter, GathersTheFactsOfALivingProcess) {
  ProcFileProvider provider;
  FileRegistry files(provider);
  ProcessTable table(files, ProcessTable::Follows::whole_host);
  const FilterFacts facts = gather_facts(table, table.find_or_introduce(Pid{::getpid()}));
  EXPECT_EQ(facts.name, "process_test");
  EXPECT_EQ(facts.executable, "process_test");
  EXPECT_EQ(facts.user, ::geteuid());
}

}  // namespace
}  // namespace ddprof
