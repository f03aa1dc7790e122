#include "collect/bpf/thread_context_reader.hpp"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "collect/bpf/bpf_call.hpp"

namespace ddprof {

namespace {

using Position = std::uint64_t;

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// GCC and Clang agree with the kernel on what these do.
Position load_position(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const Position*>(at), __ATOMIC_ACQUIRE);
}

}  // namespace

Result<ContextRing> ContextRing::open(std::size_t bytes) {
  UniqueFd fd = TRY(create_bpf_ring(bytes));
  MappedRegion consumer = TRY(MappedRegion::map_shared(fd.get(), page_bytes()));
  MappedRegion producer =
      TRY(MappedRegion::map_shared_for_reading(fd.get(), page_bytes(), page_bytes() + 2 * bytes));
  return ContextRing(std::move(fd), std::move(consumer), std::move(producer), bytes);
}

void ContextRing::drain(const std::function<void(std::span<const std::byte>)>& take) {
  const std::byte* data = producer_.data() + page_bytes();
  Position at = load_position(consumer_.data());
  const Position end = load_position(producer_.data());
  while (at < end) {
    const std::byte* head = data + (at & (bytes_ - 1));
    const std::uint32_t length =
        __atomic_load_n(reinterpret_cast<const std::uint32_t*>(head), __ATOMIC_ACQUIRE);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) break;  // being written on another CPU
    const std::uint32_t size = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if (size > bytes_) break;  // the kernel never writes that
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) take({head + BPF_RINGBUF_HDR_SZ, size});
    at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
  }
  __atomic_store_n(reinterpret_cast<Position*>(consumer_.data()), at, __ATOMIC_RELEASE);
}

void PendingContexts::add(const InterruptKey& key, Nanoseconds time, std::span<const std::byte> bytes) {
  if (count_ >= kMost) return;
  of_thread_[to_int(key.tid)].push_back({key, time, {bytes.begin(), bytes.end()}});
  ++count_;
}

std::span<const std::byte> PendingContexts::take(const InterruptKey& key, Nanoseconds time) {
  const auto found = of_thread_.find(to_int(key.tid));
  if (found == of_thread_.end()) return {};
  Pending* nearest = nullptr;
  for (Pending& pending : found->second) {
    const bool is_same = pending.key == key && !pending.is_taken;
    const Nanoseconds distance = std::chrono::abs(pending.time - time);
    if (!is_same || distance > distance_) continue;
    if (nearest == nullptr || distance < std::chrono::abs(nearest->time - time)) nearest = &pending;
  }
  if (nearest == nullptr) return {};
  nearest->is_taken = true;
  return nearest->bytes;
}

void PendingContexts::forget_before(Nanoseconds time) {
  count_ = 0;
  for (auto entry = of_thread_.begin(); entry != of_thread_.end();) {
    std::erase_if(entry->second,
                  [&](const Pending& pending) { return pending.is_taken || pending.time < time; });
    count_ += entry->second.size();
    if (entry->second.empty()) {
      of_thread_.erase(entry++);
    } else {
      ++entry;
    }
  }
}

namespace {

// A quarter of a second of samples, which is how long a busy ring waits for its reader, with room to spare.
constexpr std::size_t kRingBytesPerCpu = std::size_t{64} << 10U;
constexpr std::size_t kLeastRingBytes = std::size_t{256} << 10U;
constexpr std::size_t kMostRingBytes = std::size_t{8} << 20U;

constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel

Result<std::optional<PidNamespace>> own_pid_namespace() {
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) != 0) return errno_error(errno, "look at /proc/self/ns/pid");
  if (status.st_ino == kFirstPidNamespace) return std::optional<PidNamespace>();
  return std::optional(PidNamespace{status.st_dev, status.st_ino});
}

}  // namespace

Result<ThreadContextReader> ThreadContextReader::open(std::size_t cpus, Nanoseconds between_samples) {
  ContextProgramFacts facts;
  facts.thread_pointer = TRY(find_thread_pointer_in_task());
  facts.pid_namespace = TRY(own_pid_namespace());
  const std::size_t wanted = std::bit_ceil(cpus * kRingBytesPerCpu);
  ContextRing ring = TRY(ContextRing::open(std::clamp(wanted, kLeastRingBytes, kMostRingBytes)));
  UniqueFd table = TRY(create_bpf_memory(sizeof(ContextTable)));
  facts.ring = ring.fd();
  facts.table = table.get();
  const BpfCode code = context_program(facts);
  UniqueFd program = TRY(load_bpf_program(BPF_PROG_TYPE_PERF_EVENT, code.instructions(), "ddprof_context"));
  MappedRegion memory = TRY(MappedRegion::map_shared(table.get(), sizeof(ContextTable)));
  return ThreadContextReader(std::move(ring), std::move(table), std::move(memory), std::move(program),
                             between_samples);
}

void ThreadContextReader::attach(int event_fd) const {
  ::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_.get());
}

// The program may look at the same time: a slot is no one's while it changes.
bool ThreadContextReader::set(Pid pid, const ThreadVariable& variable) {
  ContextTable& shared = table();
  const auto process = static_cast<std::uint32_t>(to_int(pid));
  ContextTable::Slot* chosen = nullptr;
  for (std::size_t probe = 0; probe < ContextTable::kProbes; ++probe) {
    ContextTable::Slot& slot = shared.slots[(process + probe) % ContextTable::kSlots];
    if (slot.process == process) chosen = &slot;
    if (slot.process == 0 && chosen == nullptr) chosen = &slot;
  }
  if (chosen == nullptr) return variable.kind == ThreadVariable::Kind::none;
  if (chosen->process == process) {
    __atomic_store_n(&chosen->process, 0U, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&shared.used, 1U, __ATOMIC_SEQ_CST);
  }
  if (variable.kind == ThreadVariable::Kind::none) return true;
  chosen->kind = variable.kind;
  chosen->offset = variable.offset;
  chosen->module = variable.module;
  __atomic_store_n(&chosen->process, process, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&shared.used, 1U, __ATOMIC_SEQ_CST);
  return true;
}

void ThreadContextReader::clear() {
  ContextTable& shared = table();
  __atomic_store_n(&shared.used, 0U, __ATOMIC_SEQ_CST);
  for (ContextTable::Slot& slot : shared.slots) __atomic_store_n(&slot.process, 0U, __ATOMIC_RELAXED);
}

void ThreadContextReader::drain() {
  ring_.drain([this](std::span<const std::byte> record) { take_record(record); });
}

std::span<const std::byte> ThreadContextReader::take(const InterruptKey& key, Nanoseconds time) {
  if (__atomic_load_n(&table().used, __ATOMIC_RELAXED) == 0 && pending_.size() == 0) return {};
  const auto bytes = pending_.take(key, time);
  if (!bytes.empty()) return bytes;
  drain();
  return pending_.take(key, time);
}

void ThreadContextReader::take_record(std::span<const std::byte> record) {
  ContextHeader header;
  if (record.size() < sizeof header + kContextHeadBytes) return;
  std::memcpy(&header, record.data(), sizeof header);
  const auto content = record.subspan(sizeof header);
  const std::size_t size = std::min(content.size(), kContextHeadBytes + header.attribute_bytes);
  const InterruptKey key{Pid{static_cast<std::int32_t>(header.thread >> 32U)},
                         Tid{static_cast<std::int32_t>(header.thread & 0xffffffff)}, header.cpu,
                         header.address};
  pending_.add(key, Nanoseconds(static_cast<std::int64_t>(header.time)), content.first(size));
}

std::uint64_t ThreadContextReader::lost() const { return __atomic_load_n(&table().lost, __ATOMIC_RELAXED); }

}  // namespace ddprof
