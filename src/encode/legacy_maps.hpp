#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/profile_builder.hpp"

namespace ddprof {

// The text of /proc/PID/maps that the profiles of gperftools and jemalloc end with: what turns their bare
// addresses into places in files.
class LegacyMaps {
 public:
  // Executable lines become mappings; lines of any other form are passed over.
  LegacyMaps(std::string_view text, ProfileBuilder& builder);

  // The location of an address, with its mapping if there is one.
  std::uint32_t location(std::uint64_t address);

 private:
  ProfileBuilder& builder_;
  std::vector<std::uint32_t> by_start_;  // mappings, in the order of their addresses
};

}  // namespace ddprof
