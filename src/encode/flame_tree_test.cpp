#include "encode/flame_tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "encode/profile_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kCpu = 1;  // of RichProfile

std::int64_t self_of(const FlameTree& tree, const FlameNode& node) {
  std::int64_t self = node.value - node.merged_value;
  for (const std::uint32_t child : node.children) self -= tree.nodes()[child].value;
  return self;
}

// "depth name value", callers first.
std::vector<std::string> lines_of(const FlameTree& tree, std::uint32_t at = 0) {
  const FlameNode& node = tree.nodes()[at];
  std::vector<std::string> lines{
      fmt::format("{} {} {}", node.depth, tree.name(node), node.value / 10'000'000)};
  for (const std::uint32_t child : node.children) {
    for (std::string& line : lines_of(tree, child)) lines.push_back(std::move(line));
  }
  return lines;
}

// One sample for each of so many callees of main, with 1, 2, 3, …
Profile with_callees(int count) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const std::uint32_t main = builder.add_named_location("main");
  for (int at = 1; at <= count; ++at)
    builder.add_sample({{builder.add_named_location(fmt::format("f{}", at)), main}, {at}, {}});
  return std::move(builder).build();
}

TEST(FlameTree, HoldsTheStacksOfAllProcessesTheLargestFirst) {
  const FlameTree tree(testing_data::RichProfile().build(), kCpu);
  EXPECT_THAT(lines_of(tree), ElementsAre("0 all processes 355", "1 app 350", "2 main 350", "3 work() 230",
                                          "4 scale<\"x\"> 230", "5 add(int; int) 230", "3 lambda\n1 70",
                                          "3 libc.so.6+0x2234 50", "4 sys_read 50", "1 other 5",
                                          "2 [lost: ring buffer full] 5"));
}

TEST(FlameTree, KnowsWhatWasInlined) {
  const FlameTree tree(testing_data::RichProfile().build(), kCpu);
  for (const FlameNode& node : tree.nodes()) {
    const bool is_inlined = tree.name(node) == "scale<\"x\">" || tree.name(node) == "add(int; int)";
    EXPECT_EQ(node.inlined, is_inlined ? node.value : 0) << tree.name(node);
  }
}

TEST(FlameTree, CountsWhatIsTooSmallToBeANode) {
  const FlameTree tree(with_callees(100), 0, {.finest = 100});  // of 5050: from 50 on
  const FlameNode& main = tree.nodes()[1];
  EXPECT_EQ(main.value, 5050);
  EXPECT_EQ(main.children.size(), 51U);
  EXPECT_EQ(main.merged, 49U);
  EXPECT_EQ(main.merged_value, 49 * 50 / 2);
  EXPECT_EQ(self_of(tree, main), 0);
  EXPECT_EQ(tree.name(tree.nodes()[main.children.front()]), "f100");
}

TEST(FlameTree, ItsLimitsMergeTheRest) {
  testing_data::RichProfile rich;
  const Profile profile = std::move(rich).build();
  for (const FlameLimits limits :
       {FlameLimits{.nodes = 1}, FlameLimits{.nodes = 4}, FlameLimits{.depth = 2}}) {
    const FlameTree tree(profile, kCpu, limits);
    std::int64_t leaves = 0;
    for (const FlameNode& node : tree.nodes()) {
      EXPECT_GE(self_of(tree, node), 0);
      EXPECT_LT(node.depth, limits.depth);
      leaves += self_of(tree, node) + node.merged_value;
    }
    EXPECT_EQ(leaves, tree.nodes().front().value) << "nothing is lost";
  }
}

TEST(FlameTree, IsAsDeepAsTheStack) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  std::vector<std::uint32_t> stack;
  for (int at = 0; at < 2000; ++at) stack.push_back(builder.add_named_location(fmt::format("f{}", at % 7)));
  builder.add_sample({stack, {3}, {}});
  const FlameTree tree(std::move(builder).build(), 0);
  ASSERT_EQ(tree.nodes().size(), 2001U);
  EXPECT_EQ(tree.nodes().back().depth, 2000U);
  EXPECT_EQ(tree.nodes().back().value, 3);
}

TEST(FlameTree, OfNothingIsOneNode) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const FlameTree tree(std::move(builder).build(), 0);
  ASSERT_EQ(tree.nodes().size(), 1U);
  EXPECT_EQ(tree.nodes().front().value, 0);
}

TEST(FlameTree, ValuesBeyondTheLimitsDoNotWrapAround) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  for (const char* name : {"a", "b"})
    builder.add_sample({{builder.add_named_location(name)}, {std::numeric_limits<std::int64_t>::max()}, {}});
  const FlameTree tree(std::move(builder).build(), 0);
  for (const FlameNode& node : tree.nodes()) EXPECT_EQ(node.value, std::numeric_limits<std::int64_t>::max());
}

TEST(MissedValues, CountASampleOnceForEachKind) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count")};
  const std::uint32_t f = builder.add_named_location("f");
  const std::uint32_t cut = builder.add_named_location("[truncated: unknown code]");
  builder.add_sample({{f, cut, cut}, {1}, {}});
  builder.add_sample({{builder.add_named_location("[unsampled: shorter than a sampling period]")}, {20}, {}});
  builder.add_sample({{builder.add_named_location("[lost: ring buffer full]")}, {300}, {}});
  builder.add_sample({{builder.add_named_location("[throttled by the kernel]")}, {4000}, {}});
  builder.add_sample({{builder.add_named_location("[kernel: not permitted to sample]")}, {50'000}, {}});
  builder.add_sample({{builder.add_named_location("[vdso]"), f}, {600'000}, {}});
  const Profile profile = std::move(builder).build();
  const MissedValues missed = missed_values(profile, FrameTable(profile), 0);
  EXPECT_EQ(missed.truncated, 1);
  EXPECT_EQ(missed.unsampled, 20);
  EXPECT_EQ(missed.lost, 4300);
  EXPECT_EQ(missed.kernel, 50'000);
}

}  // namespace
}  // namespace ddprof
