#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprof {

inline constexpr std::size_t kMaxNameBytes = 4096;

// The readable form of a C++ (Itanium), Rust (legacy or v0) or D name; other names (C, Go) come back as they
// are. Of results longer than kMaxNameBytes both ends are left: the scope, and the function. Never recurses
// without bound, whatever the name says.
std::string demangle(std::string_view name);

// Cuts the middle out, at UTF-8 borders, and puts "…" there when `name` is longer than `limit` bytes.
std::string bounded_name(std::string_view name, std::size_t limit = kMaxNameBytes);

}  // namespace ddprof
