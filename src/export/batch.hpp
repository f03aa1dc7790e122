#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// What leaves the machine at the end of a period: one profile of each kind.
struct Batch {
  struct Part {
    std::string kind;  // "cpu"
    Profile profile;
  };

  std::uint64_t sequence = 0;  // counts the batches of a run from 0
  bool is_last = false;        // of the run, as far as is known
  Nanoseconds start{}, end{};  // Unix time
  std::vector<Part> parts;

  // One profile and its time.
  static Batch of(Profile profile, std::uint64_t sequence, std::string kind = "cpu") {
    const Nanoseconds start(profile.time_ns);
    const Nanoseconds end = start + Nanoseconds(profile.duration_ns);
    Batch batch{.sequence = sequence, .start = start, .end = end, .parts = {}};
    batch.parts.push_back({std::move(kind), std::move(profile)});
    return batch;
  }
  // A part of the only profile, sent as if it were all.
  [[nodiscard]] Batch share(Profile profile) const {
    Batch batch{.sequence = sequence, .start = start, .end = end, .parts = {}};
    batch.parts.push_back({parts.front().kind, std::move(profile)});
    return batch;
  }
};

}  // namespace ddprof
