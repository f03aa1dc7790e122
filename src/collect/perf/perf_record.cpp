#include "collect/perf/perf_record.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace ddprof {

namespace {

template <typename T>
T load(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Takes fields off the front. After a read beyond the end everything is empty and ok() is false.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename T>
  T take() {
    auto field = take_bytes(sizeof(T));
    return field.empty() ? T{} : load<T>(field.data());
  }
  std::span<const std::byte> take_bytes(std::uint64_t size) {
    if (size > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    auto field = left_.first(size);
    left_ = left_.subspan(size);
    return field;
  }
  // Only for records whose start is aligned: all fields before are multiples of 8 bytes.
  std::span<const std::uint64_t> take_words(std::uint64_t count) {
    if (count > left_.size() / sizeof(std::uint64_t)) {
      ok_ = false;
      left_ = {};
      return {};
    }
    auto field = take_bytes(count * sizeof(std::uint64_t));
    return {reinterpret_cast<const std::uint64_t*>(field.data()), count};
  }
  std::string_view take_text() {
    std::string_view text(reinterpret_cast<const char*>(left_.data()), left_.size());
    left_ = {};
    return text.substr(0, text.find('\0'));
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

perf_event_header header_of(std::span<const std::byte> bytes) {
  return load<perf_event_header>(bytes.data());
}

std::size_t trailer_bytes(std::uint64_t sample_type) {
  constexpr std::uint64_t kFields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  return static_cast<std::size_t>(std::popcount(sample_type & kFields)) * sizeof(std::uint64_t);
}

RecordId take_trailer(std::span<const std::byte> trailer, std::uint64_t sample_type) {
  FieldReader reader(trailer);
  RecordId id;
  if (sample_type & PERF_SAMPLE_TID) {
    id.pid = reader.take<std::uint32_t>();
    id.tid = reader.take<std::uint32_t>();
  }
  if (sample_type & PERF_SAMPLE_TIME) id.time = reader.take<std::uint64_t>();
  if (sample_type & PERF_SAMPLE_ID) id.identifier = reader.take<std::uint64_t>();
  if (sample_type & PERF_SAMPLE_STREAM_ID) reader.take<std::uint64_t>();
  if (sample_type & PERF_SAMPLE_CPU) id.cpu = static_cast<std::uint32_t>(reader.take<std::uint64_t>());
  if (sample_type & PERF_SAMPLE_IDENTIFIER) id.identifier = reader.take<std::uint64_t>();
  return id;
}

struct ReadValues {
  std::uint64_t value = 0, time_enabled = 0, time_running = 0;
};

// Group reads do not occur: this engine opens no groups.
ReadValues take_read(FieldReader& reader, std::uint64_t format) {
  ReadValues values;
  values.value = reader.take<std::uint64_t>();
  if (format & PERF_FORMAT_TOTAL_TIME_ENABLED) values.time_enabled = reader.take<std::uint64_t>();
  if (format & PERF_FORMAT_TOTAL_TIME_RUNNING) values.time_running = reader.take<std::uint64_t>();
  if (format & PERF_FORMAT_ID) reader.take<std::uint64_t>();
  if (format & (1U << 4)) reader.take<std::uint64_t>();  // PERF_FORMAT_LOST, Linux 6.0
  return values;
}

void take_registers(FieldReader& reader, std::uint64_t mask, SampleRecord& sample) {
  sample.registers_abi = reader.take<std::uint64_t>();
  if (sample.registers_abi != PERF_SAMPLE_REGS_ABI_NONE)
    sample.registers = reader.take_words(static_cast<std::uint64_t>(std::popcount(mask)));
}

// False when more is said to be copied than there is room for.
bool take_stack(FieldReader& reader, SampleRecord& sample) {
  sample.stack_reserved = reader.take<std::uint64_t>();
  if (sample.stack_reserved == 0) return true;  // then no dynamic size follows
  auto stack = reader.take_bytes(sample.stack_reserved);
  auto copied = reader.take<std::uint64_t>();
  if (copied > stack.size()) return false;
  sample.stack = stack.first(copied);
  return true;
}

void take_raw(FieldReader& reader, SampleRecord& sample) {
  auto size = reader.take<std::uint32_t>();
  sample.raw = reader.take_bytes(size);
}

std::optional<PerfRecord> parse_sample(FieldReader reader, std::uint16_t misc, const RecordLayout& layout) {
  constexpr std::uint64_t kUnderstood =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
      PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
      PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  const std::uint64_t type = layout.sample_type;
  if ((type & ~kUnderstood) != 0) return std::nullopt;

  SampleRecord sample;
  sample.misc = misc;
  auto take_u64 = [&](std::uint64_t bit, std::uint64_t& field) {
    if (type & bit) field = reader.take<std::uint64_t>();
  };
  std::uint64_t ignored = 0;
  take_u64(PERF_SAMPLE_IDENTIFIER, sample.id.identifier);
  take_u64(PERF_SAMPLE_IP, sample.ip);
  if (type & PERF_SAMPLE_TID) {
    sample.id.pid = reader.take<std::uint32_t>();
    sample.id.tid = reader.take<std::uint32_t>();
  }
  take_u64(PERF_SAMPLE_TIME, sample.id.time);
  take_u64(PERF_SAMPLE_ADDR, ignored);
  take_u64(PERF_SAMPLE_ID, sample.id.identifier);
  take_u64(PERF_SAMPLE_STREAM_ID, ignored);
  if (type & PERF_SAMPLE_CPU) sample.id.cpu = static_cast<std::uint32_t>(reader.take<std::uint64_t>());
  take_u64(PERF_SAMPLE_PERIOD, sample.period);
  if (type & PERF_SAMPLE_READ) take_read(reader, layout.read_format);
  if (type & PERF_SAMPLE_CALLCHAIN) sample.callchain = reader.take_words(reader.take<std::uint64_t>());
  if (type & PERF_SAMPLE_RAW) take_raw(reader, sample);
  if (type & PERF_SAMPLE_REGS_USER) {
    // Raw data is padded with its size field to a multiple of 8; anything else would leave the words
    // unaligned.
    if ((sizeof(std::uint32_t) + sample.raw.size()) % 8 != 0 && (type & PERF_SAMPLE_RAW)) return std::nullopt;
    take_registers(reader, layout.user_registers, sample);
  }
  if ((type & PERF_SAMPLE_STACK_USER) && !take_stack(reader, sample)) return std::nullopt;
  if (!reader.ok()) return std::nullopt;
  return sample;
}

MmapRecord take_mmap(FieldReader& reader, const perf_event_header& header) {
  MmapRecord map;
  map.pid = reader.take<std::uint32_t>();
  map.tid = reader.take<std::uint32_t>();
  map.start = reader.take<std::uint64_t>();
  map.length = reader.take<std::uint64_t>();
  map.file_offset = reader.take<std::uint64_t>();
  if (header.type == PERF_RECORD_MMAP2) {
    auto identity = FieldReader(reader.take_bytes(24));
    if (header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
      auto size = std::min<std::size_t>(identity.take<std::uint8_t>(), BuildId::kMaxBytes);
      identity.take_bytes(3);
      map.build_id = BuildId(identity.take_bytes(size));
    } else {
      map.device_major = identity.take<std::uint32_t>();
      map.device_minor = identity.take<std::uint32_t>();
      map.inode = identity.take<std::uint64_t>();
    }
    map.is_executable = (reader.take<std::uint32_t>() & PROT_EXEC) != 0;
    reader.take<std::uint32_t>();  // flags
  }
  map.path = reader.take_text();
  return map;
}

TaskRecord take_task(FieldReader& reader, bool is_fork) {
  TaskRecord task;
  task.is_fork = is_fork;
  task.pid = reader.take<std::uint32_t>();
  task.parent_pid = reader.take<std::uint32_t>();
  task.tid = reader.take<std::uint32_t>();
  task.parent_tid = reader.take<std::uint32_t>();
  task.time = reader.take<std::uint64_t>();
  return task;
}

CommRecord take_comm(FieldReader& reader, std::uint16_t misc) {
  CommRecord comm;
  comm.is_exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  comm.pid = reader.take<std::uint32_t>();
  comm.tid = reader.take<std::uint32_t>();
  comm.comm = reader.take_text();
  return comm;
}

ReadRecord take_read_record(FieldReader& reader, std::uint64_t format) {
  ReadRecord read;
  read.pid = reader.take<std::uint32_t>();
  read.tid = reader.take<std::uint32_t>();
  ReadValues values = take_read(reader, format);
  read.value = values.value;
  read.time_enabled = values.time_enabled;
  read.time_running = values.time_running;
  return read;
}

PerfRecord take_body(FieldReader& reader, const perf_event_header& header, const RecordLayout& layout) {
  switch (header.type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
      return take_mmap(reader, header);
    case PERF_RECORD_COMM:
      return take_comm(reader, header.misc);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return take_task(reader, header.type == PERF_RECORD_FORK);
    case PERF_RECORD_READ:
      return take_read_record(reader, layout.read_format);
    case PERF_RECORD_LOST:
      reader.take<std::uint64_t>();  // id of the event that found the ring full
      return LostRecord{{}, reader.take<std::uint64_t>()};
    case PERF_RECORD_LOST_SAMPLES:
      return LostRecord{{}, reader.take<std::uint64_t>()};
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      return ThrottleRecord{{}, header.type == PERF_RECORD_THROTTLE};
    default:
      return OtherRecord{header.type};
  }
}

bool is_well_formed(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(perf_event_header) && header_of(bytes).size == bytes.size() &&
         reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0;
}

}  // namespace

std::optional<PerfRecord> parse_record(std::span<const std::byte> bytes, const RecordLayout& layout) {
  if (!is_well_formed(bytes)) return std::nullopt;
  const perf_event_header header = header_of(bytes);
  auto body = bytes.subspan(sizeof header);
  if (header.type == PERF_RECORD_SAMPLE) return parse_sample(FieldReader(body), header.misc, layout);

  std::size_t trailer_size = trailer_bytes(layout.sample_type);
  if (body.size() < trailer_size) return std::nullopt;
  FieldReader reader(body.first(body.size() - trailer_size));
  PerfRecord record = take_body(reader, header, layout);
  if (!reader.ok()) return std::nullopt;
  RecordId id = take_trailer(body.last(trailer_size), layout.sample_type);
  std::visit(
      [&](auto& any) {
        if constexpr (requires { any.id; }) any.id = id;
      },
      record);
  return record;
}

std::optional<std::uint64_t> record_time(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(perf_event_header)) return std::nullopt;
  if (header_of(bytes).type == PERF_RECORD_SAMPLE) {
    constexpr std::size_t kTime = sizeof(perf_event_header) + 24;  // after identifier, ip, pid and tid
    if (bytes.size() < kTime + sizeof(std::uint64_t)) return std::nullopt;
    return load<std::uint64_t>(bytes.data() + kTime);
  }
  constexpr std::size_t kFromEnd = 24;  // time, cpu, identifier
  if (bytes.size() < sizeof(perf_event_header) + kFromEnd) return std::nullopt;
  return load<std::uint64_t>(bytes.data() + bytes.size() - kFromEnd);
}

std::optional<std::uint64_t> record_identifier(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(perf_event_header) + sizeof(std::uint64_t)) return std::nullopt;
  if (header_of(bytes).type == PERF_RECORD_SAMPLE)
    return load<std::uint64_t>(bytes.data() + sizeof(perf_event_header));
  return load<std::uint64_t>(bytes.data() + bytes.size() - sizeof(std::uint64_t));
}

std::span<const std::uint64_t> kernel_part(std::span<const std::uint64_t> callchain) {
  constexpr std::uint64_t kFirstMarker = static_cast<std::uint64_t>(-4095);  // PERF_CONTEXT_MAX
  constexpr std::uint64_t kKernelMarker = static_cast<std::uint64_t>(-128);  // PERF_CONTEXT_KERNEL
  auto is_marker = [](std::uint64_t entry) { return entry >= kFirstMarker; };
  auto start = std::find(callchain.begin(), callchain.end(), kKernelMarker);
  if (start == callchain.end()) return {};
  ++start;
  return {start, std::find_if(start, callchain.end(), is_marker)};
}

}  // namespace ddprof
