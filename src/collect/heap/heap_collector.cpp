#include "collect/heap/heap_collector.hpp"

#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr auto kBusyPace = 50ms;  // a ring of 1 MiB holds some 4,000 samples
constexpr auto kIdlePace = 250ms;
// Until a process has its tables it copies its stack with every sample, and the ring holds few of those. That
// is waited for at the start of the target, and of each process that is found.
constexpr auto kStartPace = 10ms;

// A process may go on without its first thread.
bool is_running(Pid pid) {
  const auto process = read_process(to_int(pid));
  return process && !process->has_ended();
}

void add(HeapCounters& counters, const ddprof_heap_counters& more) {
  counters.samples += more.samples;
  counters.lost += more.lost;
  counters.lost_bytes += more.lost_bytes;
  counters.untracked += more.untracked;
  counters.untracked_bytes += more.untracked_bytes;
  counters.nested += more.nested;
}

}  // namespace

Result<std::unique_ptr<HeapCollector>> HeapCollector::open(const Target& target,
                                                           const EngineOptions& options) {
  const auto event = std::find_if(options.events.begin(), options.events.end(), [](const EventSpec& spec) {
    return spec.kind == EventSpec::Kind::allocation;
  });
  HeapSettings settings;
  settings.interval = event->period;
  settings.has_live_blocks = event->is_live;
  settings.max_per_second = options.max_alloc_samples;
  settings.root = target.root();
  const auto index = static_cast<std::uint32_t>(event - options.events.begin());
  constexpr std::size_t kStackMemory = std::size_t{64} << 20U;  // of which only what is written is used
  auto arena = TRY(HeapArena::create(settings));
  auto stacks = TRY(MappedRegion::map_anonymous_shared(kStackMemory));
  return std::make_unique<HeapCollector>(std::move(arena), std::move(stacks), target.root(), index,
                                         options.library);
}

HeapCollector::HeapCollector(HeapArena arena, MappedRegion stack_memory, Pid root, std::uint32_t event,
                             std::string library)
    : arena_(std::move(arena)),
      root_(root),
      event_(event),
      library_(std::move(library)),
      tables_(arena_.tables()),
      stack_memory_(std::move(stack_memory)),
      stacks_(stack_memory_) {}

void HeapCollector::find_processes() {
  ddprof_heap_header& header = arena_.header();
  const std::uint32_t refused = load(header.refused);
  const std::uint32_t limited = load(header.limited);
  counters_.refused += refused - std::exchange(header.refused_told, refused);
  counters_.limited += limited - std::exchange(header.limited_told, limited);
  for (std::uint32_t number = 0; number < DDPROF_HEAP_SLOTS; ++number) {
    const Pid pid{static_cast<std::int32_t>(load(header.claims[number].pid))};
    const bool is_known = std::any_of(sources_.begin(), sources_.end(),
                                      [&](const Source& source) { return source.number == number; });
    if (is_known || to_int(pid) <= 0) continue;
    // The time is written when the slot is ready.
    if (__atomic_load_n(&header.claims[number].time, __ATOMIC_ACQUIRE) != 0)
      add(number, header.claims[number]);
    else if (!is_running(pid))
      arena_.release_slot(number);
  }
}

void HeapCollector::add(std::uint32_t number, ddprof_heap_claim& claim) {
  auto memory = arena_.map_slot(number);
  if (!memory) return;
  Source added{
      .number = number,
      .pid = Pid{static_cast<std::int32_t>(load(claim.pid))},
      .since = Nanoseconds(static_cast<std::int64_t>(__atomic_load_n(&claim.time, __ATOMIC_RELAXED))),
      .slot = std::make_unique<HeapSlot>(std::move(memory).value())};
  for (Source& source : sources_) {  // a process that attaches again has become another program
    if (source.pid != added.pid) continue;
    replace(source.since <= added.since ? source : added);
  }
  sources_.push_back(std::move(added));
  start_rounds_ = kStartRounds;
  if (__atomic_exchange_n(&claim.counted, 1, __ATOMIC_RELAXED) == 0) ++counters_.attached;
}

Result<void> HeapCollector::collect(std::chrono::milliseconds timeout, const EventHandler& handle) {
  if (timeout > 0ms) {  // nothing else is waited for
    pollfd waiter{.fd = wake_fd_, .events = POLLIN, .revents = 0};
    const auto wait = std::min(timeout, longest_wait());
    if (::poll(&waiter, 1, static_cast<int>(wait.count())) < 0 && errno != EINTR)
      return errno_error(errno, "poll");
  }
  read_all(handle);
  return {};
}

Result<void> HeapCollector::drain(const EventHandler& handle) {
  read_all(handle);
  return {};
}

void HeapCollector::read_all(const EventHandler& handle) {
  find_processes();
  is_busy_ = false;
  const bool has_tables =
      !sources_.empty() && std::all_of(sources_.begin(), sources_.end(), [](const Source& source) {
        return source.published != 0 || source.has_ended;
      });
  start_rounds_ = has_tables ? 0 : std::max(0, start_rounds_ - 1);
  const Nanoseconds now = monotonic_now();
  for (Source& source : sources_) read(source, now, handle);
  std::erase_if(sources_, [](const Source& source) { return source.slot == nullptr; });
}

void HeapCollector::read(Source& source, Nanoseconds now, const EventHandler& handle) {
  // What comes faster than it is read has to wait for the other processes.
  constexpr int kMostRecords = 20'000;
  // Before its last records are read, so that none comes after them.
  source.has_ended = source.has_ended || !is_running(source.pid);
  const std::uint64_t malformed = source.slot->malformed();
  bool is_read = false;
  for (int i = 0; i < kMostRecords && !is_read; ++i) {
    const auto record = source.slot->read(now, source.has_ended);
    is_read = !record;
    if (!record) break;
    is_busy_ = true;
    hand_over(*record, source.pid, handle);
  }
  malformed_ += source.slot->malformed() - malformed;
  ddprof::add(counters_, source.slot->take_counters());
  if (source.has_ended && is_read) end(source);
}

// At once, not when the period closes: a program that starts many others would find no slot for them. What
// its blocks were is kept in this worker alone.
void HeapCollector::end(Source& source) {
  constexpr std::size_t kMostBlocks = std::size_t{1} << 20U;
  if (!source.is_replaced) {
    for_each_block_of(source, [&](const Block& block) {
      if (ended_.size() < kMostBlocks) return ended_.push_back(block);
      ++counters_.untracked;
      counters_.untracked_bytes += static_cast<std::uint64_t>(block.bytes);
    });
  }
  source.slot.reset();
  arena_.release_slot(source.number);
}

void HeapCollector::hand_over(const HeapRecord& record, Pid pid, const EventHandler& handle) const {
  const HeapWeight weight = HeapWeight::of(record.header.size, record.header.interval, record.header.time);
  SampleEvent sample;
  sample.pid = pid;
  sample.tid = Tid{static_cast<std::int32_t>(record.header.tid)};
  sample.time = Nanoseconds(static_cast<std::int64_t>(record.header.time));
  sample.event = event_;
  sample.value = weight.bytes;
  sample.count = weight.objects;
  sample.stack_id = record.header.stack;
  std::array<std::uint64_t, DDPROF_HEAP_MAX_FRAMES> chain;  // NOLINT: written below as far as it is read
  if (record.header.kind == DDPROF_HEAP_FRAMES) {
    const std::size_t count = std::min<std::size_t>(record.payload.size(), chain.size());
    if (count == 0) return;
    std::copy_n(record.payload.begin(), count, chain.begin());
    --chain[0];  // the innermost is a return address too
    sample.user_chain = std::span(chain).first(count);
    if (record.header.end == DDPROF_HEAP_TOO_DEEP) sample.user_chain_end = StopReason::depth_limit;
    if (record.header.end == DDPROF_HEAP_CUT) sample.user_chain_end = StopReason::unread_unwind_info;
  } else {
    if (record.payload.size() < DDPROF_HEAP_RAW_REGISTERS) return;
    sample.has_registers = true;
    sample.starts_in_library = true;
    for (std::size_t i = 0; i + 1 < DDPROF_HEAP_RAW_REGISTERS; ++i)
      sample.registers.by_dwarf_number[i] = record.payload[i];
    sample.registers.pc = sample.address = record.payload[DDPROF_HEAP_RAW_REGISTERS - 1];
    constexpr std::size_t kFp = 6;
    constexpr std::size_t kSp = 7;
    sample.registers.fp = record.payload[kFp];
    sample.registers.sp = record.payload[kSp];
    sample.stack = std::as_bytes(record.payload.subspan(DDPROF_HEAP_RAW_REGISTERS));
    sample.stack_requested = static_cast<std::uint32_t>(sample.stack.size());
  }
  handle(sample);
}

bool HeapCollector::is_finished() {
  find_processes();
  return !is_running(root_) && std::none_of(sources_.begin(), sources_.end(),
                                            [](const Source& source) { return is_running(source.pid); });
}

CollectorCounters HeapCollector::counters() const {
  CollectorCounters counters;
  counters.heap = counters_;
  counters.malformed_records = malformed_;
  return counters;
}

std::string HeapCollector::describe() const {
  return fmt::format("allocations by libddprof.so, one in {} KiB", arena_.header().control.interval / 1024);
}

std::vector<NeededCall> HeapCollector::needed_calls() const { return {{SYS_fallocate}}; }

std::chrono::milliseconds HeapCollector::longest_wait() const {
  if (start_rounds_ > 0) return kStartPace;
  return is_busy_ ? kBusyPace : kIdlePace;
}

std::vector<std::string> HeapCollector::target_environment() const {
  std::vector<std::string> variables{DDPROF_HEAP_VARIABLE "=" + arena_.location()};
  if (!library_.empty()) variables.insert(variables.begin(), "LD_PRELOAD=" + library_);
  return variables;
}

void HeapCollector::for_each_block_of(const Source& source, const std::function<void(const Block&)>& take) {
  source.slot->for_each_block([&](std::uint64_t, const ddprof_heap_block& block) {
    const HeapWeight weight = HeapWeight::of(block.size, block.interval, block.time);
    take({.pid = source.pid,
          .stack_id = block.stack,
          .bytes = weight.bytes,
          .count = weight.objects,
          .since = Nanoseconds(static_cast<std::int64_t>(block.time))});
  });
}

void HeapCollector::for_each_block(const std::function<void(const Block&)>& take) const {
  for (const Block& block : ended_) take(block);
  for (const Source& source : sources_)
    if (!source.is_replaced) for_each_block_of(source, take);
}

void HeapCollector::forget_blocks(Pid pid, Nanoseconds time) {
  for (Source& source : sources_)
    if (source.pid == pid && source.since <= time) replace(source);
}

std::vector<Pid> HeapCollector::processes() const {
  std::vector<Pid> pids;
  for (const Source& source : sources_)
    if (!source.has_ended) pids.push_back(source.pid);
  return pids;
}

void HeapCollector::publish(Pid pid, const ModuleMap& modules, const RuleDictionary& rules) {
  for (Source& source : sources_) {
    if (source.pid != pid || source.published == modules.generation()) continue;
    source.slot->publish(tables_->describe(modules, rules));
    source.published = modules.generation();
  }
}

}  // namespace ddprof
