#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// The samples of one thread, for formats that show threads one by one. Texts are empty where the profile has
// no such label; a profile without any is one thread without a name.
struct ThreadSamples {
  std::string name;
  std::string tid;
  std::string process;
  std::string pid;
  std::vector<std::uint32_t> samples;  // in the order of time, if all have one, else of the profile
  bool has_times = false;              // every sample has an end_timestamp_ns
};

// The process with the most of the default column comes first, and within a process the thread with the most.
std::vector<ThreadSamples> samples_by_thread(const Profile& profile);

// When a sample was taken, as Unix time: its numeric label end_timestamp_ns.
std::optional<std::int64_t> sample_time_ns(const Profile& profile, const ProfileSample& sample);

}  // namespace ddprof
