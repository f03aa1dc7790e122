#include "collect/replay/event_file.hpp"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ddprof {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "ddprof events 3\n";

// What every event consists of, for the reader and the writer alike.
template <typename Codec>
bool code_fields(Codec& codec, SampleEvent& event) {
  return codec(event.pid, event.tid, event.time, event.cpu, event.event, event.value, event.count,
               event.address, event.in_kernel, event.basis, event.has_registers, event.registers, event.stack,
               event.stack_requested, event.kernel_chain, event.user_chain, event.thread_context,
               event.starts_in_library, event.stack_id, event.user_chain_end, event.is_32_bit);
}
template <typename Codec>
bool code_fields(Codec& codec, MapEvent& event) {
  return codec(event.pid, event.tid, event.time, event.start, event.length, event.file_offset,
               event.device_major, event.device_minor, event.inode, event.build_id, event.is_executable,
               event.path);
}
template <typename Codec>
bool code_fields(Codec& codec, ForkEvent& event) {
  return codec(event.pid, event.parent_pid, event.tid, event.parent_tid, event.time);
}
template <typename Codec>
bool code_fields(Codec& codec, CommEvent& event) {
  return codec(event.pid, event.tid, event.time, event.is_exec, event.comm);
}
template <typename Codec>
bool code_fields(Codec& codec, ExitEvent& event) {
  return codec(event.pid, event.tid, event.time);
}
template <typename Codec>
bool code_fields(Codec& codec, TaskTotalEvent& event) {
  return codec(event.pid, event.tid, event.event, event.value);
}
template <typename Codec>
bool code_fields(Codec& codec, TickEvent& event) {
  return codec(event.pid, event.tid, event.event, event.value);
}
template <typename Codec>
bool code_fields(Codec& codec, DetachedEvent& event) {
  return codec(event.pid, event.time);
}
template <typename Codec>
bool code_fields(Codec& codec, LostEvent& event) {
  return codec(event.tid, event.records);
}
template <typename Codec>
bool code_fields(Codec& codec, ThrottleEvent& event) {
  return codec(event.time, event.is_start);
}
template <typename Codec>
bool code_fields(Codec& codec, RecordedTotal& total) {
  return codec(total.event, total.value);
}

constexpr std::size_t kEventKinds = std::variant_size_v<CollectorEvent>;
constexpr auto kTotalKind = static_cast<std::uint8_t>(kEventKinds);
constexpr auto kBatchEndKind = static_cast<std::uint8_t>(kEventKinds + 1);

struct Writer {
  std::string& to;

  template <typename... Fields>
  bool operator()(const Fields&... fields) {
    (put(fields), ...);
    return true;
  }

  template <typename Plain>
  void put(const Plain& value) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const BuildId& id) { put(id.bytes()); }
  void put(std::string_view text) { put(std::as_bytes(std::span(text))); }
  template <typename Element>
  void put(std::span<const Element> elements) {
    put(static_cast<std::uint32_t>(elements.size()));
    to.append(reinterpret_cast<const char*>(elements.data()), elements.size_bytes());
  }
};

struct Reader {
  std::span<const std::byte>& from;
  std::vector<std::uint64_t>* chains[2];  // where the arrays of an event are put, in their order
  std::size_t chain = 0;

  template <typename... Fields>
  bool operator()(Fields&... fields) {
    return (get(fields) && ...);
  }

  template <typename Plain>
  bool get(Plain& value) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    if (from.size() < sizeof value) return false;
    std::memcpy(&value, from.data(), sizeof value);
    from = from.subspan(sizeof value);
    return true;
  }
  bool get(bool& value) {
    std::uint8_t byte = 0;
    if (!get(byte)) return false;
    value = byte != 0;
    return true;
  }
  bool get(BuildId& id) {
    std::span<const std::byte> bytes;
    if (!get(bytes)) return false;
    id = BuildId(bytes);
    return true;
  }
  bool get(std::string_view& text) {
    std::span<const std::byte> bytes;
    if (!get(bytes)) return false;
    text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }
  bool get(std::span<const std::byte>& bytes) { return take(1, bytes); }
  bool get(std::span<const std::uint64_t>& addresses) {
    std::span<const std::byte> bytes;
    if (!take(sizeof addresses[0], bytes)) return false;
    std::vector<std::uint64_t>& copy = *chains[chain++];
    copy.resize(bytes.size() / sizeof addresses[0]);
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    addresses = copy;
    return true;
  }
  bool take(std::size_t element_size, std::span<const std::byte>& bytes) {
    std::uint32_t count = 0;
    if (!get(count) || count > from.size() / element_size) return false;
    bytes = from.first(count * element_size);
    from = from.subspan(bytes.size());
    return true;
  }
};

// The event of this place in the variant.
template <std::size_t kind = 0>
std::optional<CollectorEvent> read_event(std::size_t wanted, Reader& reader) {
  if constexpr (kind < kEventKinds) {
    if (kind != wanted) return read_event<kind + 1>(wanted, reader);
    std::variant_alternative_t<kind, CollectorEvent> event;
    if (code_fields(reader, event)) return event;
  }
  return std::nullopt;
}

}  // namespace

EventFileWriter::EventFileWriter() : bytes_(kMagic) {}

void EventFileWriter::write(const CollectorEvent& event) {
  bytes_ += static_cast<char>(event.index());
  Writer writer{bytes_};
  std::visit([&](auto known) { code_fields(writer, known); }, event);
}

void EventFileWriter::write(const RecordedTotal& total) {
  bytes_ += static_cast<char>(kTotalKind);
  Writer writer{bytes_};
  RecordedTotal copy = total;
  code_fields(writer, copy);
}

void EventFileWriter::write(const RecordedBatchEnd&) { bytes_ += static_cast<char>(kBatchEndKind); }

Result<EventFileReader> EventFileReader::open(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), kMagic.size()));
  if (start != kMagic)
    return make_error(ErrorCode::invalid_argument, "not a file of events of this version of ddprof");
  return EventFileReader(bytes.subspan(kMagic.size()));
}

Result<EventFileReader::Record> EventFileReader::next() {
  Reader reader{rest_, {&kernel_chain_, &user_chain_}};
  std::uint8_t kind = kBatchEndKind;
  if (reader.get(kind)) {
    if (kind == kBatchEndKind) return Record(RecordedBatchEnd());
    RecordedTotal total;
    if (kind == kTotalKind && code_fields(reader, total)) return Record(total);
    if (auto event = read_event(kind, reader)) return Record(*event);
  }
  rest_ = {};
  return make_error(ErrorCode::invalid_argument, "a file of events ends within a record, or is damaged");
}

}  // namespace ddprof
