#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// Builds a Profile: equal strings, mappings, functions and locations are stored once. The add functions
// return the index of the new or existing entry.
class ProfileBuilder {
 public:
  StringIndex intern(std::string_view text);
  ValueType value_type(std::string_view type, std::string_view unit) { return {intern(type), intern(unit)}; }

  // Mappings are the same when range, offset, path and build id are; flags of later ones are merged in.
  std::uint32_t add_mapping(const ProfileMapping& mapping);
  // An empty system name takes the readable one, and the other way round.
  std::uint32_t add_function(std::string_view name, std::string_view system_name = {},
                             std::string_view file = {}, std::int64_t start_line = 0);
  std::uint32_t add_location(std::uint32_t mapping, Address address, std::span<const ProfileLine> lines);
  // A frame that is only a name: markers, and code of which nothing else is known.
  std::uint32_t add_named_location(std::string_view name);
  void add_sample(ProfileSample sample) { profile_.samples.push_back(std::move(sample)); }

  ProfileLabel text_label(std::string_view key, std::string_view text);
  ProfileLabel number_label(std::string_view key, std::int64_t number, std::string_view unit = {});

  // For the plain fields: times, value types, period, comments.
  [[nodiscard]] Profile& profile() { return profile_; }
  [[nodiscard]] Profile build() && { return std::move(profile_); }

 private:
  Profile profile_;
  DenseIndex strings_, mappings_, functions_, locations_;
};

}  // namespace ddprof
