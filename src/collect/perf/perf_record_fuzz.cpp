#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collect/perf/perf_record.hpp"

// Input: sample_type, register mask and read format (8 bytes each), then a record as the kernel would have
// written it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLayoutBytes = 24;
  if (size < kLayoutBytes + sizeof(perf_event_header)) return 0;
  ddprof::RecordLayout layout;
  std::memcpy(&layout.sample_type, data, 8);
  std::memcpy(&layout.user_registers, data + 8, 8);
  std::memcpy(&layout.read_format, data + 16, 8);

  // Rings are aligned; a copy of the exact size lets the sanitizer see every byte too far.
  std::size_t bytes = (size - kLayoutBytes) & ~std::size_t{7};
  std::vector<std::uint64_t> words(bytes / 8);
  std::memcpy(words.data(), data + kLayoutBytes, bytes);
  auto record_size = static_cast<std::uint16_t>(bytes);
  std::memcpy(reinterpret_cast<std::byte*>(words.data()) + offsetof(perf_event_header, size), &record_size,
              2);
  auto record_bytes = std::as_bytes(std::span(words));

  (void)ddprof::record_time(record_bytes);
  (void)ddprof::record_identifier(record_bytes);
  auto record = ddprof::parse_record(record_bytes, layout);
  if (!record) return 0;
  std::uint64_t sum = 0;
  if (const auto* sample = std::get_if<ddprof::SampleRecord>(&*record)) {
    for (std::byte byte : sample->stack) sum += std::to_integer<std::uint64_t>(byte);
    for (std::byte byte : sample->raw) sum += std::to_integer<std::uint64_t>(byte);
    for (std::uint64_t value : sample->registers) sum += value;
    for (std::uint64_t address : ddprof::kernel_part(sample->callchain)) sum += address;
  } else if (const auto* map = std::get_if<ddprof::MmapRecord>(&*record)) {
    for (char character : map->path) sum += static_cast<unsigned char>(character);
  } else if (const auto* comm = std::get_if<ddprof::CommRecord>(&*record)) {
    for (char character : comm->comm) sum += static_cast<unsigned char>(character);
  }
  volatile std::uint64_t keep = sum;
  (void)keep;
  return 0;
}
