#pragma once

#include <cstddef>
#include <span>

#include "base/ids.hpp"

namespace ddprof {

// The memory of a running target as it is now, which is later than the sample that is being unwound: what it
// says is evidence, not truth (see outer_frames.hpp). A higher layer reads with process_vm_readv; tests fake
// it.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;

  // Fills the front of `into` with what is readable from `address` on; returns how many bytes that was.
  virtual std::size_t read(Address address, std::span<std::byte> into) = 0;

  // The moment of the reads, on the clock of StackCopy::taken_at.
  [[nodiscard]] virtual Nanoseconds now() const = 0;

 protected:
  MemoryReader() = default;
  MemoryReader(const MemoryReader&) = default;
  MemoryReader& operator=(const MemoryReader&) = default;
};

}  // namespace ddprof
