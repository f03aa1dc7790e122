#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/sample_merger.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {

// The shared tables of a Firefox profile, read and checked once: every index that is in here is good.
class FirefoxStacks {
 public:
  static Result<FirefoxStacks> read(const boost::json::object& profile, ProfileBuilder& builder,
                                    MemoryBudget& budget);

  [[nodiscard]] std::size_t size() const { return stacks_.size(); }

  // The locations of a stack, leaf first; none when the budget is used up.
  std::optional<std::vector<std::uint32_t>> locations(std::uint32_t stack);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Function {
    std::uint32_t index = 0;    // into the profile's functions
    std::uint32_t lib = kNone;  // until version 69, where libraries hang on resources
  };
  struct Frame {
    std::uint32_t function = 0;
    std::uint32_t lib = kNone;
    std::int64_t address = -1;
    std::int64_t depth = 0;
    std::int64_t line = 0, column = 0;
  };
  struct Stack {
    std::uint32_t frame = 0;
    std::uint32_t parent = kNone;
    std::uint32_t location = kNone;  // known when first asked for
    std::uint32_t caller = kNone;    // with location: the stack behind the calls that share its address
  };

  FirefoxStacks(ProfileBuilder& builder, MemoryBudget& budget) : builder_(&builder), budget_(&budget) {}

  Result<void> read_strings(const boost::json::object& shared);
  Result<void> read_functions(const boost::json::object& shared, std::size_t libs);
  Result<void> read_frames(const boost::json::object& shared, std::size_t libs);
  Result<void> read_stacks(const boost::json::object& shared);
  Result<void> lay_out_libs(const boost::json::object& profile);
  bool resolve(std::uint32_t stack);

  ProfileBuilder* builder_;
  MemoryBudget* budget_;
  std::vector<std::string_view> strings_;
  std::vector<Function> functions_;
  std::vector<Frame> frames_;
  std::vector<Stack> stacks_;
  std::vector<std::uint32_t> mappings_;  // by lib
};

}  // namespace ddprof
