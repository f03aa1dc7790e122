#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"

namespace ddprof {

// The events of a collector as bytes: a header with a version, then records of one kind byte and the fields
// of that kind in their order, little-endian, texts and arrays behind their length. A file is read by the
// version that wrote it: tests and benchmarks record anew.

// The exact value of an event, as the collector said it then.
struct RecordedTotal {
  std::uint32_t event = 0;
  std::int64_t value = 0;
};
// One call of collect() ends here.
struct RecordedBatchEnd {};

class EventFileWriter {
 public:
  EventFileWriter();

  void write(const CollectorEvent& event);
  void write(const RecordedTotal& total);
  void write(const RecordedBatchEnd& end);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class EventFileReader {
 public:
  using Record = std::variant<CollectorEvent, RecordedTotal, RecordedBatchEnd>;

  static Result<EventFileReader> open(std::span<const std::byte> bytes);

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }
  // The next record, valid until the next call. The bytes outlive the reader.
  Result<Record> next();

 private:
  explicit EventFileReader(std::span<const std::byte> rest) : rest_(rest) {}

  std::span<const std::byte> rest_;
  std::vector<std::uint64_t> kernel_chain_, user_chain_;  // aligned, unlike the bytes
};

}  // namespace ddprof
