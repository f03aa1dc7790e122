#include "inject/sampler.hpp"

#include <sys/mman.h>
#include <time.h>

#include "inject/attachment.hpp"
#include "inject/countdown.hpp"
#include "inject/real_functions.hpp"
#include "inject/ring_writer.hpp"
#include "inject/stack_memory.hpp"
#include "inject/stack_walk.hpp"
#include "inject/system_calls.hpp"

namespace inject {

alignas(4096) constinit PageFilter page_filter{};
static constinit FullBuckets full_buckets{};

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // without a system call, nearly everywhere
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void forget_live_blocks() {
  system_call(SYS_madvise, to_argument(page_filter.counts_), PageFilter::kPages, MADV_DONTNEED);
  look_at_bootstrap_blocks();
}

namespace {

void count(uint64_t& counter, uint64_t by = 1) { __atomic_fetch_add(&counter, by, __ATOMIC_RELAXED); }

// What a sample of that size stands for: size / (1 - e^(-size / interval)). Only for what is lost: the
// profiler computes the others itself.
uint64_t weight_of(uint64_t size, uint64_t interval) {
  const double x = static_cast<double>(size) / static_cast<double>(interval);
  if (x > 16) return size;
  double power = 1 - x / 4096;
  for (int i = 0; i < 12; ++i) power *= power;
  return x < 1e-3 ? interval + size / 2 : static_cast<uint64_t>(static_cast<double>(size) / (1 - power));
}

// --- Room for the frames of a walk
// -----------------------------------------------------------------------------

// Stacks may be small, so long lists do not go there. More threads at once than there are lists have short
// ones.
class FrameList {
 public:
  static constexpr size_t kFew = 64;

  FrameList() {
    uint32_t taken = __atomic_load_n(&lists_taken, __ATOMIC_RELAXED);
    while (taken != kAll) {
      const auto free = static_cast<uint32_t>(__builtin_ctz(~taken));
      if (!__atomic_compare_exchange_n(&lists_taken, &taken, taken | 1U << free, true, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED))
        continue;
      number_ = free;
      frames = lists[free];
      most = DDPROF_HEAP_MAX_FRAMES;
      return;
    }
    frames = few_;
    most = kFew;
  }
  ~FrameList() {
    if (number_ != kNone) __atomic_fetch_and(&lists_taken, ~(1U << number_), __ATOMIC_RELEASE);
  }
  FrameList(const FrameList&) = delete;
  FrameList& operator=(const FrameList&) = delete;

  uint64_t* frames;
  size_t most;

 private:
  static constexpr uint32_t kLists = 8;
  static constexpr uint32_t kAll = (1U << kLists) - 1;
  static constexpr uint32_t kNone = ~0U;
  static uint64_t lists[kLists][DDPROF_HEAP_MAX_FRAMES];
  static uint32_t lists_taken;

  uint32_t number_ = kNone;
  uint64_t few_[kFew];
};

uint64_t FrameList::lists[FrameList::kLists][DDPROF_HEAP_MAX_FRAMES];
uint32_t FrameList::lists_taken;

// --- How many samples
// ---------------------------------------------------------------------------------------------

// Doubles the interval as often as it takes to stay within the wanted number of samples, inside of a window
// of time, and halves it again when there are few. Each sample says what interval it was taken with, so
// nothing is biased by it.
void keep_pace(ddprof_heap_slot& slot, uint64_t now, bool is_ring_full) {
  constexpr uint32_t kWindowBits = 27;  // 134 ms
  constexpr uint64_t kWindowsPerSecond = 8;
  constexpr uint64_t kLargest = uint64_t{1} << 40U;
  ddprof_heap_pace& pace = slot.pace;
  const uint64_t wanted = __atomic_load_n(&slot.control.interval, __ATOMIC_RELAXED);
  const uint64_t limit =
      __atomic_load_n(&slot.control.max_per_second, __ATOMIC_RELAXED) / kWindowsPerSecond + 1;
  uint64_t interval = __atomic_load_n(&pace.interval, __ATOMIC_RELAXED);
  if (interval < wanted) interval = wanted;
  const uint64_t window = now >> kWindowBits;
  uint64_t before = __atomic_load_n(&pace.window, __ATOMIC_RELAXED);
  if (before != window &&
      __atomic_compare_exchange_n(&pace.window, &before, window, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    uint64_t samples = __atomic_exchange_n(&pace.samples, 0, __ATOMIC_RELAXED);
    for (uint64_t passed = window - before; passed > 0 && samples < limit / 2 && interval > wanted;
         --passed, samples = 0)
      interval = interval / 2 > wanted ? interval / 2 : wanted;
    __atomic_store_n(&pace.interval, interval, __ATOMIC_RELAXED);
  }
  // The profiler empties a full ring every 50 ms: each sample that is lost until then says the same.
  constexpr uint64_t kPause = 50'000'000;
  uint64_t full = __atomic_load_n(&pace.full, __ATOMIC_RELAXED);
  is_ring_full =
      is_ring_full && now - full > kPause &&
      __atomic_compare_exchange_n(&pace.full, &full, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&pace.samples, 1, __ATOMIC_RELAXED) < limit && !is_ring_full) return;
  __atomic_store_n(&pace.samples, limit / 2, __ATOMIC_RELAXED);
  if (interval < kLargest) __atomic_store_n(&pace.interval, interval * 2, __ATOMIC_RELAXED);
}

// --- One sample
// ----------------------------------------------------------------------------------------------------

bool write_frames(ddprof_heap_slot& slot, ddprof_heap_record& record, const uint64_t* frames,
                  uint32_t frame_count) {
  RingWriter writer;
  record.kind = DDPROF_HEAP_FRAMES;
  record.payload = frame_count;
  if (!writer.reserve(slot, RingWriter::kHeaderWords + frame_count)) return false;
  for (uint32_t i = 0; i < frame_count; ++i) writer.put(RingWriter::kHeaderWords + i, frames[i]);
  writer.commit(record);
  return true;
}

constexpr uint64_t kLeastRawBytes = 2048;

// Registers as they are here, and the stack from here on: the profiler walks out of this library first.
[[gnu::noinline]] bool write_raw(ddprof_heap_slot& slot, ddprof_heap_record& record, StackMemory& memory,
                                 uint64_t sp_of_walk) {
#if defined(__x86_64__)
  uint64_t registers[DDPROF_HEAP_RAW_REGISTERS]{};  // by DWARF number: rax rdx rcx rbx rsi rdi rbp rsp
                                                    // r8..r15, rip
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n\t"
      "0:\n\t"
      "movq %%rax, 128(%0)\n\t"
      :
      : "r"(registers)
      : "rax", "memory");
  const uint64_t sp = registers[7];
  // A part of what is left, so that hundreds fit: and the last quarter of the ring is for records without a
  // stack.
  constexpr uint64_t kWords = DDPROF_HEAP_RING_BYTES / 8;
  const uint64_t used =
      __atomic_load_n(&slot.head, __ATOMIC_RELAXED) - __atomic_load_n(&slot.tail, __ATOMIC_RELAXED);
  const uint64_t left = used < kWords * 3 / 4 ? (kWords * 3 / 4 - used) * 8 : 0;
  uint64_t bytes = left / 256;
  if (bytes < kLeastRawBytes) bytes = kLeastRawBytes;
  const uint64_t words = (sp_of_walk - sp + memory.readable_bytes(sp_of_walk, bytes)) / 8;
  if (left < words * 8) return false;
  static uint64_t numbers;
  record.kind = DDPROF_HEAP_RAW;
  record.payload = static_cast<uint32_t>(DDPROF_HEAP_RAW_REGISTERS + words);
  record.stack = ddprof_heap_hash(~DDPROF_HEAP_HASH_SEED, __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED));
  RingWriter writer;
  if (!writer.reserve(slot, RingWriter::kHeaderWords + record.payload)) return false;
  for (uint32_t i = 0; i < DDPROF_HEAP_RAW_REGISTERS; ++i)
    writer.put(RingWriter::kHeaderWords + i, registers[i]);
  const auto* stack = reinterpret_cast<const volatile uint64_t*>(sp);
  for (uint64_t i = 0; i < words; ++i)
    writer.put(RingWriter::kHeaderWords + DDPROF_HEAP_RAW_REGISTERS + i, stack[i]);
  writer.commit(record);
  return true;
#else
  (void)slot, (void)record, (void)memory, (void)sp_of_walk;
  return false;
#endif
}

}  // namespace

SlowPath::SlowPath(size_t size) : size_(size) {
  constexpr size_t kLargest = ~size_t{0} / 2;  // that any allocator can serve
  constexpr uint8_t kMostNested = 16;
  ThreadState& state = thread_state;
  if (size > kLargest) state.countdown += size;
  if (!state.is_due()) return;
  // Not for ever: a signal handler that does not return leaves this behind.
  if (state.is_resolving || (state.is_sampling && state.nested < kMostNested)) {
    ++state.nested;
    Countdown(state).pass_over();
    if (ddprof_heap_slot* slot = attachment.own_slot()) count(slot->counters.nested);
    return;
  }
  state.nested = 0;
  state.is_sampling = is_sampling_ = true;
  asm volatile("" ::: "memory");
  attachment.look_around();
  const uint64_t interval = attachment.interval();
  if (state.random == 0 && interval != 0) state.random = monotonic_ns() ^ reinterpret_cast<uint64_t>(&state);
  interval_ = Countdown(state).expire(interval);
}

void SlowPath::record(void* block, const uint64_t* frame, ddprof_heap_what what) {
  ddprof_heap_slot* slot = attachment.slot();
  if (slot == nullptr) return;
  ThreadState& state = thread_state;
  if (state.tid == 0)
    state.tid = attachment.is_sandboxed() ? ~0U : static_cast<uint32_t>(system_call(SYS_gettid));
  ddprof_heap_record record{};
  record.what = static_cast<uint8_t>(what);
  record.tid = state.tid;
  record.time = monotonic_ns();
  record.size = size_;
  record.interval = interval_;
  record.address = reinterpret_cast<uint64_t>(block);

  const WalkStart start{frame[1], reinterpret_cast<uint64_t>(frame + 2), frame[0]};
  bool is_written = false;
  {
    const FrameList list;
    StackMemory memory(state, start.sp, !attachment.is_sandboxed());
    const WalkResult walk = walk_stack(start, attachment.code(), memory, list.frames, list.most);
    record.stack = walk.hash;
    record.end = walk.end == WalkEnd::too_deep ? DDPROF_HEAP_TOO_DEEP : DDPROF_HEAP_COMPLETE;
    if (walk.end != WalkEnd::no_rule || !write_raw(*slot, record, memory, start.sp)) {
      if (walk.end == WalkEnd::no_rule) record.end = DDPROF_HEAP_CUT;
      record.stack = walk.hash;
      is_written = write_frames(*slot, record, list.frames, walk.frames);
    } else {
      is_written = true;
    }
  }
  count(slot->counters.samples);
  if (!is_written) {
    record.stack = 0;
    count(slot->counters.lost);
    count(slot->counters.lost_bytes, weight_of(size_, interval_));
  }
  keep_pace(*slot, record.time, !is_written);
  if ((__atomic_load_n(&slot->control.flags, __ATOMIC_RELAXED) & DDPROF_HEAP_LIVE) != 0)
    remember_block(block, {.size = size_, .interval = interval_, .stack = record.stack, .time = record.time});
}

void remember_block(const void* address, const ddprof_heap_block& block) {
  ddprof_heap_slot* slot = attachment.own_slot();
  if (slot == nullptr) return;
  const auto key = reinterpret_cast<uint64_t>(address);
  page_filter.add(key);
  switch (LiveSet(*slot, full_buckets).add(key, block)) {
    case LiveSet::Added::yes:
      return;
    case LiveSet::Added::replaced:
      count(slot->counters.reused);
      break;
    case LiveSet::Added::no_room:
      count(slot->counters.untracked);
      count(slot->counters.untracked_bytes, weight_of(block.size, block.interval));
      break;
  }
  page_filter.remove(key);
}

bool forget_block(const void* address, ddprof_heap_block* block) {
  if (address == nullptr || is_bootstrap_block(address)) return false;
  attachment.look_around();
  ddprof_heap_slot* slot = attachment.own_slot();
  const auto key = reinterpret_cast<uint64_t>(address);
  if (slot == nullptr || !LiveSet(*slot, full_buckets).remove(key, block)) return false;
  page_filter.remove(key);
  return true;
}

}  // namespace inject
