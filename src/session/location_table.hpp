#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/frame.hpp"
#include "profile/profile_builder.hpp"
#include "session/closed_period.hpp"
#include "symbol/code_names.hpp"

namespace ddprof {

// What is known of one frame: its calls, innermost first, at least one.
struct FrameDescription {
  std::span<const NamedCall> calls;
  bool is_symbol = false;  // not only a place in a file
};

// Joins frames to a ProfileBuilder: locations once per distinct frame, mappings once per representative.
class LocationTable {
 public:
  // Both must outlive this.
  LocationTable(const ClosedPeriod& period, ProfileBuilder& builder);

  // The mapping of a program, also if no frame is in it. By convention a profile begins with the main one.
  void add_program(FileId program);
  std::uint32_t add(const Frame& frame, const FrameDescription& description);

 private:
  [[nodiscard]] const CodeMapping* find_mapping(const Frame& frame) const;
  std::uint32_t add_user_mapping(const CodeMapping& mapping, const FrameDescription& description);
  std::uint32_t add_kernel_mapping(const FrameDescription& description);

  const ClosedPeriod& period_;
  ProfileBuilder& builder_;
  absl::flat_hash_map<std::uint32_t, std::vector<std::size_t>> by_file_;  // positions in period_.mappings
};

}  // namespace ddprof
