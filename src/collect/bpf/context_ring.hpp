#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// The reading end of a BPF ring. Both positions are in memory that fork() shares: whoever reads next goes on
// where the last one stopped.
class ContextRing {
 public:
  static Result<ContextRing> open(std::size_t bytes);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Every complete record, in the order in which their places were taken.
  void drain(const std::function<void(std::span<const std::byte>)>& take);

 private:
  ContextRing(UniqueFd fd, MappedRegion consumer, MappedRegion producer, std::size_t bytes)
      : fd_(std::move(fd)), consumer_(std::move(consumer)), producer_(std::move(producer)), bytes_(bytes) {}

  UniqueFd fd_;
  MappedRegion consumer_;  // one page, ours to write
  MappedRegion producer_;  // one page, and the data twice, so that no record is cut
  std::size_t bytes_ = 0;
};

}  // namespace ddprof
