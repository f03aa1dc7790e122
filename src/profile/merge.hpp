#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "profile/profile.hpp"

namespace ddprof {

// What becomes of the values of a profile that is added to others.
struct MergeRule {
  std::int64_t sums = 1;       // factor of columns that add up over time
  std::int64_t snapshots = 1;  // of those that do not: snapshot.hpp
  std::string_view without_label{};
  bool by_address = false;  // an address that an earlier profile had has its names: it may have had more
};

// Two profiles of one run as one: equal stacks with equal labels are added up. Columns, period and comments
// are those of `later`, which must have the columns of `earlier`; other columns of `earlier` are left out,
// and so are its snapshots.
Profile merge(const Profile& earlier, const Profile& later);

// Any number of profiles as one, of which only one is in memory beside the sum. Columns are those of `shape`;
// period and comments are those of the last one.
class ProfileMerger {
 public:
  explicit ProfileMerger(const Profile& shape);
  ProfileMerger(ProfileMerger&&) noexcept;
  ProfileMerger& operator=(ProfileMerger&&) noexcept;
  ~ProfileMerger();

  void add(const Profile& profile, const MergeRule& rule = {});
  Profile take() &&;

  // One profile with the columns of all, which have different names. Samples of different kinds stay apart:
  // each has zeros in the columns of the others. What is said of the whole is said by the first.
  static Profile join_kinds(std::span<const Profile* const> kinds);

 private:
  class Sum;
  std::unique_ptr<Sum> sum_;
};

}  // namespace ddprof
