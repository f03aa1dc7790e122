#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

// Room on a disk for what is too large for memory: packed debug information is unpacked there in pieces.
class Scratch {
 public:
  using Append = std::function<Result<void>(std::span<const std::byte> piece)>;
  using Produce = std::function<Result<void>(const Append& append)>;

  virtual ~Scratch() = default;
  // Maps what `produce` has appended, `bytes` in all. Fails with `exhausted` when there is no such room.
  virtual Result<MappedRegion> fill(std::uint64_t bytes, const Produce& produce) = 0;
};

}  // namespace ddprof
