#pragma once

#include <utility>

#include "base/private_folder.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

// Room in a folder of ours. At most a quarter of what the disk has left is taken at a time, and nothing where
// the folder is in memory itself (tmpfs). What is written is gone when it is unmapped, also after a crash.
class DiskScratch : public Scratch {
 public:
  explicit DiskScratch(PrivateFolder folder) : folder_(std::move(folder)) {}

  Result<MappedRegion> fill(std::uint64_t bytes, const Produce& produce) override;

 private:
  PrivateFolder folder_;
};

}  // namespace ddprof
