#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// On a timeline a sample holds many events of one stack and thread, most of which have a time of their own.
// It is not known which event had how much of its values: each gets the same share.

// Cuts a number into shares that add up to it, whatever the division leaves.
class EvenShares {
 public:
  EvenShares(std::int64_t whole, std::uint32_t shares)
      : each_(whole / shares), rest_(whole % shares), shares_(shares) {}

  // How much the first `count` shares have together. |rest_| < shares_ < 2^32: no overflow.
  [[nodiscard]] std::int64_t of_first(std::uint32_t count) const {
    return each_ * count + rest_ * std::int64_t{count} / shares_;
  }

 private:
  std::int64_t each_;
  std::int64_t rest_;
  std::int64_t shares_;
};

// The parts of a sample, one after the other: the events that have a time, then all others together. A
// sample without times is one part.
class SampleParts {
 public:
  // May be used for one sample after another, and keeps its memory.
  void begin(const ProfileSample& sample);
  bool next();

  [[nodiscard]] const std::vector<std::int64_t>& values() const { return values_; }
  [[nodiscard]] std::optional<std::int64_t> time() const { return time_; }  // Unix time, nanoseconds

 private:
  const ProfileSample* sample_ = nullptr;
  std::vector<EvenShares> shares_;   // by column
  std::vector<std::int64_t> given_;  // by column, to the parts so far
  std::vector<std::int64_t> values_;
  std::optional<std::int64_t> time_;
  std::uint32_t events_ = 0;  // at least one
  std::uint32_t done_ = 0;
};

[[nodiscard]] bool has_timeline(const Profile& profile);

// For formats in which each event is a sample with a label for its time.
Profile with_a_sample_per_event(Profile profile);

}  // namespace ddprof
