#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace ddprof {

// Appends samples to a pprof. They are nearly all of it, so this is written by hand: on a timeline many
// follow each other with the same stack, which is then encoded once, and a label's length always fits into
// one byte.
class PprofSampleWriter {
 public:
  explicit PprofSampleWriter(std::string& bytes) : bytes_(bytes) {}

  // Makes room for all of them at once: growing step by step would need three times their size for a moment.
  void reserve_for(const std::vector<ProfileSample>& samples);
  void write(const ProfileSample& sample);

 private:
  void encode_stack(const std::vector<std::uint32_t>& locations);
  char* reserve(std::size_t size);

  std::string& bytes_;
  std::vector<std::uint32_t> locations_;  // of the sample before
  std::string stack_;                     // the field that they made
  std::string buffer_;
};

// A pprof with samples that are made while it is written; `tables` has everything else, and may grow
// meanwhile.
std::string encode_pprof(const Profile& tables, const std::function<void(PprofSampleWriter&)>& write_samples);

}  // namespace ddprof
