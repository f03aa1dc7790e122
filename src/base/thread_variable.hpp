#pragma once

#include <cstdint>

namespace ddprof {

// Where each thread of a process has its own copy of a variable, as the C library lays them out on x86-64.
struct ThreadVariable {
  enum class Kind : std::uint32_t {
    none = 0,
    fixed = 1,    // `offset` bytes from the thread pointer
    dynamic = 2,  // `offset` bytes into the block of `module`, which the thread's vector (DTV) knows
  };
  Kind kind = Kind::none;
  std::int64_t offset = 0;
  std::uint64_t module = 0;

  friend bool operator==(const ThreadVariable&, const ThreadVariable&) = default;
};

}  // namespace ddprof
