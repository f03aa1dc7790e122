#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/build_id.hpp"

namespace ddprof {

// What the bytes of a record mean depends on the attributes of the event that wrote it.
struct RecordLayout {
  std::uint64_t sample_type = 0;
  std::uint64_t user_registers = 0;  // mask
  std::uint64_t read_format = 0;

  static RecordLayout of(const perf_event_attr& attr) {
    return {attr.sample_type, attr.sample_regs_user, attr.read_format};
  }
};

// Who wrote a record, and when; behind every record but samples (sample_id_all). Absent fields are 0.
struct RecordId {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t time = 0;
  std::uint32_t cpu = 0;
  std::uint64_t identifier = 0;
};

struct SampleRecord {
  RecordId id;
  std::uint16_t misc = 0;
  std::uint64_t ip = 0;
  std::uint64_t period = 0;
  std::span<const std::uint64_t> callchain;
  std::span<const std::byte> raw;
  std::uint64_t registers_abi = 0;  // 0 none, 1 32-bit, 2 64-bit
  std::span<const std::uint64_t> registers;
  std::span<const std::byte> stack;  // what was copied
  std::uint64_t stack_reserved = 0;  // what was asked for
};

struct MmapRecord {  // PERF_RECORD_MMAP and MMAP2
  RecordId id;
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t start = 0, length = 0, file_offset = 0;
  std::uint32_t device_major = 0, device_minor = 0;
  std::uint64_t inode = 0;
  BuildId build_id;
  bool is_executable = true;
  std::string_view path;
};

struct CommRecord {
  RecordId id;
  std::uint32_t pid = 0, tid = 0;
  bool is_exec = false;
  std::string_view comm;
};

struct TaskRecord {  // PERF_RECORD_FORK and EXIT
  RecordId id;
  bool is_fork = false;
  std::uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
  std::uint64_t time = 0;
};

struct ReadRecord {
  RecordId id;
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t value = 0, time_enabled = 0, time_running = 0;
};

struct LostRecord {  // PERF_RECORD_LOST and LOST_SAMPLES
  RecordId id;
  std::uint64_t count = 0;
};

struct ThrottleRecord {
  RecordId id;
  bool is_start = true;
};

struct OtherRecord {
  std::uint32_t type = 0;
};

using PerfRecord = std::variant<SampleRecord, MmapRecord, CommRecord, TaskRecord, ReadRecord, LostRecord,
                                ThrottleRecord, OtherRecord>;

// Parses one record (header included, starting at an 8-byte boundary). None when it contradicts itself; spans
// and views point into `bytes`.
std::optional<PerfRecord> parse_record(std::span<const std::byte> bytes, const RecordLayout& layout);

// The parts that are needed before the record's own layout is known. They are at the same place for all
// layouts that have IDENTIFIER, TID, TIME and CPU, and samples IP, which is all that this engine opens.
std::optional<std::uint64_t> record_time(std::span<const std::byte> bytes);
std::optional<std::uint64_t> record_identifier(std::span<const std::byte> bytes);

// The kernel's part of a call chain: leaf first, without context markers.
std::span<const std::uint64_t> kernel_part(std::span<const std::uint64_t> callchain);

}  // namespace ddprof
