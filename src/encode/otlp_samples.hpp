#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encode/otlp_dictionary.hpp"
#include "profile/dense_index.hpp"
#include "profile/profile.hpp"
#include "profile/timeline.hpp"

namespace ddprof {

// Texts of a resource or scope are written out for each process, not shared. A hostile profile may not use
// that to become enormous: longer ones stay where they are shared, as do processes beyond the first.
inline constexpr std::size_t kMaxOtlpResourceText = 4096;
inline constexpr std::size_t kMaxOtlpProcesses = 4096;

// Sets of numbers, each distinct one stored once. 0 is the empty one.
class NumberSets {
 public:
  NumberSets() { add({}); }
  std::uint32_t add(std::span<const std::uint32_t> sorted);
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t set) const {
    return std::span(numbers_).subspan(ends_[set], ends_[set + 1] - ends_[set]);
  }
  [[nodiscard]] std::size_t size() const { return index_.size(); }

 private:
  std::vector<std::uint32_t> numbers_;
  std::vector<std::size_t> ends_{0};
  DenseIndex index_;
};

// A sample of the profile, or one event of it, as OTLP sees it. Those that agree in all but row and time are
// one there.
struct OtlpSample {
  std::uint32_t process = 0;  // of OtlpSamples::process()
  std::uint32_t stack = 0;    // of the dictionary
  std::uint32_t attributes = 0;
  std::uint32_t link = 0;    // of the dictionary; 0: belongs to no span
  std::uint32_t row = 0;     // of its values
  std::int64_t time_ns = 0;  // Unix time; 0: not known

  [[nodiscard]] bool has_time() const { return time_ns != 0; }
};

// All samples that have a value, in order of their process, whether they have a time, stack and attributes,
// and then of time: what belongs together is together.
class OtlpSamples {
 public:
  explicit OtlpSamples(OtlpDictionary& dictionary);

  [[nodiscard]] std::span<const OtlpSample> all() const { return samples_; }
  [[nodiscard]] std::int64_t value(const OtlpSample& sample, std::size_t column) const {
    return values_[sample.row * columns_ + column];
  }
  // Numbers of the dictionary.
  [[nodiscard]] std::span<const std::uint32_t> attributes(const OtlpSample& sample) const {
    return attribute_sets_[sample.attributes];
  }
  // What the labels say about the sample's process.
  [[nodiscard]] std::vector<OtlpAttribute> process(const OtlpSample& sample) const;
  // ProfileSample::process of all samples of the sample's process.
  [[nodiscard]] std::uint32_t identity(const OtlpSample& sample) const;

 private:
  // A distinct label: profiles have few, and each is on many samples.
  struct Known {
    ProfileLabel label;
    OtlpAttribute attribute;
    OtlpDictionary::Number number = 0;  // once it is an attribute of a sample
    bool is_of_process = false;
  };

  // In a set of a process's labels, which are numbered from 0: who the process is.
  static constexpr std::uint32_t kIdentity = 0x80000000;

  void add(std::uint32_t index);
  [[nodiscard]] OtlpDictionary::Number link_of(const ProfileSample& sample) const;
  OtlpSample described(std::uint32_t index);
  [[nodiscard]] bool is_time(const ProfileLabel& label) const;
  std::uint32_t known_label(const ProfileLabel& label);
  [[nodiscard]] Known read_label(const ProfileLabel& label) const;
  void add_attribute(std::uint32_t label);
  std::uint32_t process_set();

  OtlpDictionary& dictionary_;
  std::vector<OtlpSample> samples_;
  std::size_t columns_;
  std::vector<std::int64_t> values_;  // one row for each sample or event
  SampleParts parts_;
  std::vector<Known> labels_;
  DenseIndex label_index_;
  NumberSets attribute_sets_, process_sets_;
  StringIndex trace_key_ = 0, span_key_ = 0;  // of the profile; 0: no sample has such a label
  absl::flat_hash_map<StringIndex, std::string> given_names_;  // of labels that threads made up
  std::vector<std::uint32_t> attributes_, process_labels_;     // of the sample at hand
};

}  // namespace ddprof
