#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// Cuts a profile into shares. Each sample is in one of them, whole and in its order, so that values add up;
// tables hold what the share uses and nothing else. All shares together cost one walk through the profile.
class ProfileCutter {
 public:
  // `share_of_sample` has a number below `shares` for each sample. The profile outlives the cutter.
  ProfileCutter(const Profile& profile, std::span<const std::uint32_t> share_of_sample, std::size_t shares);

  [[nodiscard]] bool has_samples(std::size_t share) const { return ends_[share] < ends_[share + 1]; }
  // Comments speak of the whole profile: one share has them, or none.
  [[nodiscard]] Profile cut(std::size_t share, bool has_comments);

 private:
  static constexpr std::uint32_t kUnused = 0xffffffff;

  // New numbers for one table of the profile, given in order of use and forgotten after each share.
  class Renumbering {
   public:
    explicit Renumbering(std::size_t entries) : numbers_(entries, kUnused) {}

    // Whether it is used for the first time.
    bool use(std::uint32_t entry);
    [[nodiscard]] std::uint32_t operator[](std::uint32_t entry) const { return numbers_[entry]; }
    void forget();
    // In the order of their new numbers.
    [[nodiscard]] const std::vector<std::uint32_t>& used() const { return used_; }

   private:
    std::vector<std::uint32_t> numbers_;
    std::vector<std::uint32_t> used_;
  };

  StringIndex text(StringIndex index);
  ProfileLabel label(const ProfileLabel& from);
  std::uint32_t location(std::uint32_t index);
  std::uint32_t function(std::uint32_t index);
  std::uint32_t mapping(std::uint32_t index);
  void add_header(bool has_comments);
  void add_sample(const ProfileSample& sample);
  void sort_mappings();

  const Profile& from_;
  std::vector<std::uint32_t> samples_;  // by share
  std::vector<std::size_t> ends_;       // of shares in it
  Renumbering strings_, mappings_, functions_, locations_;
  Profile made_;
};

}  // namespace ddprof
