#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ddprof {

// The DWARF expressions that compilers put into CFI are few; this is what they can come to:
//   not dereferenced:  register + inner
//   dereferenced:      *(register + inner) + outer
struct CfiAddress {
  // Stands for the CFA, which register expressions find on the stack.
  static constexpr std::uint64_t kCfa = ~std::uint64_t{0};

  std::uint64_t base_register = 0;
  std::int64_t inner = 0;
  bool is_dereferenced = false;
  std::int64_t outer = 0;

  friend bool operator==(const CfiAddress&, const CfiAddress&) = default;
};

// Nothing when the expression is of any other form. `cfa_is_pushed`: it starts with the CFA on its stack.
[[nodiscard]] std::optional<CfiAddress> simplify_cfi_expression(std::span<const std::byte> expression,
                                                                bool cfa_is_pushed);

// The expression that linkers write for the x86-64 .plt: rsp + 8 + (((rip & 15) >= threshold) << 3).
// Returns the threshold: 11 for the old stub, 10 for others.
[[nodiscard]] std::optional<std::uint8_t> match_plt_expression(std::span<const std::byte> expression);

}  // namespace ddprof
