#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprof {

inline constexpr std::size_t kMaxNameBytes = 1000;

// The readable form of a C++ (Itanium), Rust (legacy or v0) or D name; other names (C, Go) come back as they
// are. Longer results than kMaxNameBytes end in "…". Never recurses without bound, whatever the name says.
std::string demangle(std::string_view name);

// Cuts at a UTF-8 border and adds "…" when `name` is longer than `limit` bytes.
std::string bounded_name(std::string_view name, std::size_t limit = kMaxNameBytes);

}  // namespace ddprof
