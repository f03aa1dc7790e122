#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "profile/timeline.hpp"

namespace ddprof {

// Appends samples to a pprof, each event of a timeline as one with a label for its time. They are nearly all
// of it, so this is written by hand: stack and labels are encoded once for all events of a sample, and a
// label's length always fits into one byte.
class PprofSampleWriter {
 public:
  PprofSampleWriter(std::string& bytes, const ProfileLabel& time_label)
      : bytes_(bytes), time_label_(time_label) {}

  // Makes room for all of them at once: growing step by step would need three times their size for a moment.
  void reserve_for(const std::vector<ProfileSample>& samples);
  void write(const ProfileSample& sample);

 private:
  void encode_stack(const std::vector<std::uint32_t>& locations);
  void encode_labels(const std::vector<ProfileLabel>& labels);
  void write_part();
  char* reserve(std::size_t size);

  std::string& bytes_;
  ProfileLabel time_label_;
  std::vector<std::uint32_t> locations_;  // of the sample before
  std::string stack_;                     // the field that they made
  std::string labels_;                    // the fields of the sample at hand
  SampleParts parts_;
  std::string buffer_;
};

// A pprof with samples that are made while it is written; `tables` has everything else, and may grow
// meanwhile.
std::string encode_pprof(const Profile& tables, const std::function<void(PprofSampleWriter&)>& write_samples);

}  // namespace ddprof
