#include "encode/pprof_sample.hpp"

#include "proto/pprof_fields.hpp"

namespace ddprof {

namespace {

namespace field = pprof_field;

constexpr std::size_t kMostVarintBytes = 10;
constexpr std::size_t kMostLabelBytes = 2 + 4 * (1 + kMostVarintBytes);
static_assert(kMostLabelBytes < 128, "the length of a label is one byte");

char* put_varint(char* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) *at++ = static_cast<char>(value | 0x80U);
  *at++ = static_cast<char>(value);
  return at;
}

// All field numbers here are below 16: the tag is one byte.
char* put_tag(char* at, std::uint32_t number, std::uint32_t wire_type) {
  *at++ = static_cast<char>((number << 3U) | wire_type);
  return at;
}
constexpr std::uint32_t kVarint = 0, kLengthDelimited = 2;

// proto3 leaves zeros out.
char* put_number(char* at, std::uint32_t number, std::uint64_t value) {
  return value == 0 ? at : put_varint(put_tag(at, number, kVarint), value);
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7U) ++size;
  return size;
}

char* put_values(char* at, const std::vector<std::int64_t>& values) {
  if (values.empty()) return at;
  std::size_t size = 0;
  for (std::int64_t value : values) size += varint_size(static_cast<std::uint64_t>(value));
  at = put_varint(put_tag(at, field::kSampleValue, kLengthDelimited), size);
  // Negative numbers take ten bytes, as their two's complement.
  for (std::int64_t value : values) at = put_varint(at, static_cast<std::uint64_t>(value));
  return at;
}

char* put_label(char* at, const ProfileLabel& label) {
  char* const content = put_tag(at, field::kSampleLabel, kLengthDelimited) + 1;
  char* end = put_number(content, field::kLabelKey, label.key);
  if (label.text != 0) {
    end = put_number(end, field::kLabelText, label.text);
  } else {
    end = put_number(end, field::kLabelNumber, static_cast<std::uint64_t>(label.number));
    end = put_number(end, field::kLabelUnit, label.unit);
  }
  if (end == content) return at;
  content[-1] = static_cast<char>(end - content);
  return end;
}

}  // namespace

// Somewhat more than they take: a value or a label has seldom more bytes.
void PprofSampleWriter::reserve_for(const std::vector<ProfileSample>& samples) {
  constexpr std::size_t kUsualLocation = 2, kUsualValue = 4, kUsualLabel = 8, kUsualHead = 6, kUsualTime = 16;
  std::size_t size = 0;
  for (const ProfileSample& sample : samples) {
    const std::size_t part = kUsualHead + sample.locations.size() * kUsualLocation +
                             sample.values.size() * kUsualValue + sample.labels.size() * kUsualLabel;
    size += sample.times.empty() ? part : sample.times.size() * (part + kUsualTime) + part;
  }
  bytes_.reserve(bytes_.size() + size + size / 4);
}

char* PprofSampleWriter::reserve(std::size_t size) {
  if (buffer_.size() < size) buffer_.resize(size);
  return buffer_.data();
}

// pprof's ids are the indices plus one: 0 is "none".
void PprofSampleWriter::encode_stack(const std::vector<std::uint32_t>& locations) {
  locations_ = locations;
  stack_.clear();
  if (locations.empty()) return;
  constexpr std::size_t kMostHeadBytes = 1 + kMostVarintBytes;
  char* const content = reserve(kMostHeadBytes + locations.size() * kMostVarintBytes) + kMostHeadBytes;
  char* end = content;
  for (std::uint32_t location : locations) end = put_varint(end, std::uint64_t{location} + 1);
  char* const head = buffer_.data();
  const auto size = static_cast<std::size_t>(end - content);
  char* const head_end = put_varint(put_tag(head, field::kSampleLocationId, kLengthDelimited), size);
  stack_.assign(head, head_end).append(content, size);
}

void PprofSampleWriter::encode_labels(const std::vector<ProfileLabel>& labels) {
  char* const head = reserve(labels.size() * kMostLabelBytes);
  char* end = head;
  for (const ProfileLabel& label : labels) end = put_label(end, label);
  labels_.assign(head, end);
}

void PprofSampleWriter::write(const ProfileSample& sample) {
  if (sample.locations != locations_) encode_stack(sample.locations);
  encode_labels(sample.labels);
  for (parts_.begin(sample); parts_.next();) write_part();
}

void PprofSampleWriter::write_part() {
  constexpr std::size_t kMostHeadBytes = 1 + kMostVarintBytes;
  char* const head =
      reserve(2 * kMostHeadBytes + parts_.values().size() * kMostVarintBytes + kMostLabelBytes);
  char* const values = head + kMostHeadBytes;
  char* const time = put_values(values, parts_.values());
  char* end = time;
  if (parts_.time()) {
    time_label_.number = *parts_.time();
    end = put_label(time, time_label_);
  }
  const auto size = stack_.size() + labels_.size() + static_cast<std::size_t>(end - values);
  char* const head_end = put_varint(put_tag(head, field::kSample, kLengthDelimited), size);
  bytes_.append(head, head_end).append(stack_).append(values, time).append(labels_).append(time, end);
}

}  // namespace ddprof
