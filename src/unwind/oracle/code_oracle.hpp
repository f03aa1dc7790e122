#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "unwind/code_walk.hpp"

namespace ddprof {

// What comparing rows made from the instructions of a file with its CFI found.
struct CodeOracleReport {
  std::uint64_t addresses = 0;              // instructions that have a CFI row to compare with
  std::array<std::uint64_t, 8> outcomes{};  // by CodeRow::Outcome
  std::uint64_t same = 0;
  std::uint64_t other_cfa = 0;
  std::uint64_t other_fp = 0;
  // Differences where the instructions before the address prove that CFI is wrong: assembly that moves the
  // stack pointer, or overwrites rbp, without telling.
  std::uint64_t wrong_cfi = 0;
  // The CFA is given by another register, whose distance is not known to this judge.
  std::uint64_t incomparable = 0;
  // Of rbx and r12 to r15 at addresses where the rules are the same.
  std::uint64_t places = 0;  // where the walk says where the caller's value is
  std::uint64_t unknown_places = 0;
  std::uint64_t early_places = 0;           // saved, and CFI does not say so yet
  std::uint64_t other_places = 0;           // of those that it says, not where CFI says
  std::vector<std::uint32_t> instructions;  // that walks read
  std::vector<std::uint32_t> nanoseconds;   // of CPU that walks took
  std::vector<std::string> details;         // the first differences

  [[nodiscard]] std::uint64_t rules() const { return outcomes[0]; }
  [[nodiscard]] std::uint64_t judged() const { return rules() - wrong_cfi - incomparable; }
};

// Every `stride`th instruction of code that has CFI.
[[nodiscard]] Result<CodeOracleReport> compare_code_with_cfi(std::span<const std::byte> image,
                                                             std::size_t stride,
                                                             std::size_t max_details = 20);

}  // namespace ddprof
