#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// The process of a sample, from its labels; a text is empty when there is no such label.
struct SampledProcess {
  std::string name, id;
};

struct SampledThread {
  std::uint32_t process = 0;  // index into processes()
  std::string name, id;
};

// Every distinct thread and process of a profile's samples, in order of appearance. Labels are compared as
// numbers: a million samples need no strings.
class ThreadTable {
 public:
  explicit ThreadTable(const Profile& profile);

  // The thread of sample number `sample`.
  [[nodiscard]] std::uint32_t of(std::size_t sample) const { return by_sample_[sample]; }
  [[nodiscard]] std::span<const SampledThread> threads() const { return threads_; }
  [[nodiscard]] std::span<const SampledProcess> processes() const { return processes_; }

 private:
  std::vector<std::uint32_t> by_sample_;
  std::vector<SampledThread> threads_;
  std::vector<SampledProcess> processes_;
};

}  // namespace ddprof
