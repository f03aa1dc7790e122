#include "encode/otlp_samples.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"

namespace ddprof {

namespace {

bool is_same_label(const ProfileLabel& left, const ProfileLabel& right) {
  return left.key == right.key && left.text == right.text && left.number == right.number &&
         left.unit == right.unit;
}

std::uint64_t hash_of_label(const ProfileLabel& label) {
  return hash_mix(hash_mix(label.key, label.text),
                  hash_mix(static_cast<std::uint64_t>(label.number), label.unit));
}

bool comes_before(const OtlpSample& left, const OtlpSample& right) {
  const auto key = [](const OtlpSample& sample) {
    return std::tuple(sample.process, sample.has_time(), sample.stack, sample.attributes, sample.link,
                      sample.time_ns, sample.row);
  };
  return key(left) < key(right);
}

bool has_value(const ProfileSample& sample) {
  return std::any_of(sample.values.begin(), sample.values.end(),
                     [](std::int64_t value) { return value != 0; });
}

// 32 hexadecimal digits, as of a trace.
bool read_digits(std::string_view text, std::array<char, 16>& bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned byte = 0;
    const char* const at = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, byte, 16);
    if (error != std::errc() || end != at + 2) return false;
    bytes[i] = static_cast<char>(byte);
  }
  return true;
}

void sort_unique(std::vector<std::uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace

std::uint32_t NumberSets::add(std::span<const std::uint32_t> sorted) {
  std::uint64_t hash = sorted.size();
  for (std::uint32_t number : sorted) hash = hash_mix(hash, number);
  const std::uint32_t known = index_.find(hash, [&](std::uint32_t set) {
    const std::span<const std::uint32_t> other = (*this)[set];
    return std::equal(sorted.begin(), sorted.end(), other.begin(), other.end());
  });
  if (known != DenseIndex::kNotFound) return known;
  numbers_.insert(numbers_.end(), sorted.begin(), sorted.end());
  ends_.push_back(numbers_.size());
  return index_.append(hash);
}

OtlpSamples::OtlpSamples(OtlpDictionary& dictionary)
    : dictionary_(dictionary), columns_(dictionary.profile().value_types.size()) {
  const Profile& profile = dictionary.profile();
  for (StringIndex key = 0; key < profile.strings.size(); ++key) {
    if (profile.text(key) == kTraceIdLabel) trace_key_ = key;
    if (profile.text(key) == kSpanIdLabel) span_key_ = key;
  }
  for (StringIndex key : profile.context_keys)
    given_names_.emplace(key, "process.context.label." + profile.strings[key]);
  const std::vector<ProfileSample>& samples = profile.samples;
  std::size_t rows = 0;
  for (const ProfileSample& sample : samples) rows += sample.times.size() + 1;
  samples_.reserve(rows);
  values_.reserve(rows * columns_);
  for (std::uint32_t index = 0; index < samples.size(); ++index) {
    if (has_value(samples[index])) add(index);
  }
  if (!std::is_sorted(samples_.begin(), samples_.end(), comes_before))
    std::sort(samples_.begin(), samples_.end(), comes_before);
}

void OtlpSamples::add(std::uint32_t index) {
  const OtlpSample whole = described(index);
  for (parts_.begin(dictionary_.profile().samples[index]); parts_.next();) {
    OtlpSample& sample = samples_.emplace_back(whole);
    sample.row = static_cast<std::uint32_t>(samples_.size() - 1);
    sample.time_ns = parts_.time().value_or(whole.time_ns);
    values_.insert(values_.end(), parts_.values().begin(), parts_.values().end());
  }
}

// The span that it belongs to, when it says both of which trace and which one.
OtlpDictionary::Number OtlpSamples::link_of(const ProfileSample& sample) const {
  if (trace_key_ == 0 || span_key_ == 0) return 0;
  OtlpDictionary::Link link;
  bool has_trace = false;
  std::uint64_t span = 0;
  for (const ProfileLabel& label : sample.labels) {
    if (label.key == trace_key_)
      has_trace = read_digits(dictionary_.profile().text(label.text), link.trace_id);
    if (label.key == span_key_ && label.text == 0) span = static_cast<std::uint64_t>(label.number);
  }
  if (!has_trace || span == 0) return 0;
  for (std::size_t i = link.span_id.size(); i-- > 0; span >>= 8U)
    link.span_id[i] = static_cast<char>(span & 0xffU);
  return dictionary_.link(link);
}

OtlpSample OtlpSamples::described(std::uint32_t index) {
  const ProfileSample& from = dictionary_.profile().samples[index];
  OtlpSample sample{.stack = dictionary_.stack(index), .link = link_of(from)};
  attributes_.clear();
  process_labels_.clear();
  for (const ProfileLabel& label : from.labels) {
    if (sample.link != 0 && (label.key == trace_key_ || label.key == span_key_)) continue;
    // Times are nearly all different: they would only fill the table of labels.
    if (is_time(label) && !sample.has_time()) {
      sample.time_ns = label.number;
    } else if (const std::uint32_t known = known_label(label); labels_[known].is_of_process) {
      process_labels_.push_back(known);
    } else {
      add_attribute(known);
    }
  }
  if (from.process != 0) process_labels_.push_back(kIdentity | from.process);
  sample.process = process_set();  // may add attributes
  sort_unique(attributes_);
  sample.attributes = attribute_sets_.add(attributes_);
  return sample;
}

std::uint32_t OtlpSamples::process_set() {
  sort_unique(process_labels_);
  const std::uint32_t set = process_sets_.add(process_labels_);
  if (set < kMaxOtlpProcesses) return set;
  for (std::uint32_t label : process_labels_)
    if (label < kIdentity) add_attribute(label);
  return 0;
}

void OtlpSamples::add_attribute(std::uint32_t label) {
  Known& known = labels_[label];
  if (known.number == 0) known.number = dictionary_.attribute(known.attribute);
  attributes_.push_back(known.number);
}

bool OtlpSamples::is_time(const ProfileLabel& label) const {
  return label.text == 0 && label.number > 0 && dictionary_.profile().text(label.key) == kEndTimestampLabel;
}

std::uint32_t OtlpSamples::known_label(const ProfileLabel& label) {
  const std::uint64_t hash = hash_of_label(label);
  const std::uint32_t known =
      label_index_.find(hash, [&](std::uint32_t at) { return is_same_label(labels_[at].label, label); });
  if (known != DenseIndex::kNotFound) return known;
  labels_.push_back(read_label(label));
  return label_index_.append(hash);
}

OtlpSamples::Known OtlpSamples::read_label(const ProfileLabel& label) const {
  const Profile& profile = dictionary_.profile();
  OtlpLabelName name = otlp_label_name(profile.text(label.key));
  if (const auto given = given_names_.find(label.key); given != given_names_.end())
    name.attribute = given->second;
  Known known{.label = label,
              .attribute = {name.attribute, label.number, otlp_unit(profile.text(label.unit))}};
  if (label.text != 0) known.attribute = {name.attribute, profile.text(label.text), {}};
  known.is_of_process = name.is_of_process && profile.text(label.text).size() <= kMaxOtlpResourceText;
  return known;
}

std::vector<OtlpAttribute> OtlpSamples::process(const OtlpSample& sample) const {
  std::vector<OtlpAttribute> attributes;
  for (std::uint32_t label : process_sets_[sample.process])
    if (label < kIdentity) attributes.push_back(labels_[label].attribute);
  return attributes;
}

std::uint32_t OtlpSamples::identity(const OtlpSample& sample) const {
  const std::span<const std::uint32_t> set = process_sets_[sample.process];
  return set.empty() || set.back() < kIdentity ? 0 : set.back() & ~kIdentity;
}

}  // namespace ddprof
