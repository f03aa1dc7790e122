#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

class Scratch;

// How much of the profiler's memory reading one foreign file may take: a quarter of --max-memory, because
// three threads read files at a time. Whatever a file claims to hold, its reader stops there, and says so.
struct ReadLimits {
  static constexpr std::uint64_t kDefaultMemory = std::uint64_t{256} << 20U;
  static constexpr std::uint64_t kNoLimit = std::uint64_t{4} << 30U;  // taken for it when there is none

  std::uint64_t max_memory = kDefaultMemory;  // --max-memory in bytes; 0: no limit
  Scratch* scratch = nullptr;                 // for what is packed and larger; null: that is not read

  [[nodiscard]] constexpr std::uint64_t bytes() const {
    return (max_memory == 0 ? kNoLimit : max_memory) / 4;
  }
  // How many things of `size` bytes fit into one of so many equal parts of it.
  [[nodiscard]] constexpr std::size_t count(std::size_t size, unsigned parts) const {
    return static_cast<std::size_t>(bytes() / parts / size);
  }

  [[nodiscard]] constexpr std::uint64_t mebibytes() const {
    return (max_memory == 0 ? kNoLimit : max_memory) >> 20U;
  }

  // "read symbols: 90000000 bytes are too large to read with --max-memory 256"
  [[nodiscard]] Error too_large(std::string_view operation, std::uint64_t size) const {
    return make_error(ErrorCode::exhausted, "{}: {} bytes are too large to read with --max-memory {}",
                      operation, size, mebibytes());
  }
};

}  // namespace ddprof
