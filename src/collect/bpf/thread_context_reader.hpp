#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/thread_variable.hpp"
#include "base/unique_fd.hpp"
#include "collect/bpf/context_program.hpp"

namespace ddprof {

// The reading end of a BPF ring. Both positions are in memory that fork() shares: the next reader goes on
// where the last one stopped.
class ContextRing {
 public:
  static Result<ContextRing> open(std::size_t bytes);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Every complete record, in the order in which their places were taken.
  void drain(const std::function<void(std::span<const std::byte>)>& take);

 private:
  ContextRing(UniqueFd fd, MappedRegion consumer, MappedRegion producer, std::size_t bytes)
      : fd_(std::move(fd)), consumer_(std::move(consumer)), producer_(std::move(producer)), bytes_(bytes) {}

  UniqueFd fd_;
  MappedRegion consumer_;  // one page, ours to write
  MappedRegion producer_;  // one page, and the data twice, so that no record is cut
  std::size_t bytes_ = 0;
};

// What tells which sample a context was read for: both were made in the same interrupt.
struct InterruptKey {
  Pid pid{};
  Tid tid{};
  std::uint32_t cpu = 0;
  std::uint64_t address = 0;  // of the interrupted instruction

  friend bool operator==(const InterruptKey&, const InterruptKey&) = default;
};

// Contexts that wait for their samples. Both are stamped in one interrupt, a few microseconds apart: the
// context first, or on newer kernels (seen on 6.18) the sample. So a sample has the nearest context of its
// thread, CPU and instruction, and none when that is further away than any two samples of a thread would be.
class PendingContexts {
 public:
  // On a virtual machine that loses its CPU in between the two may be further apart; then there is no
  // context.
  static constexpr Nanoseconds kGreatestDistance = std::chrono::microseconds(200);
  static constexpr std::size_t kMost = 100'000;

  // `between_samples`: of one thread on one CPU, at least.
  explicit PendingContexts(Nanoseconds between_samples)
      : distance_(std::min(kGreatestDistance, between_samples / 4)) {}

  void add(const InterruptKey& key, Nanoseconds time, std::span<const std::byte> bytes);
  // The context of the sample with this key and time, once; valid until forget_before(). Empty: there is
  // none.
  std::span<const std::byte> take(const InterruptKey& key, Nanoseconds time);
  // All samples of before that time have been seen.
  void forget_before(Nanoseconds time);

  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  struct Pending {
    InterruptKey key;
    Nanoseconds time{};
    std::vector<std::byte> bytes;
    bool is_taken = false;
  };

  Nanoseconds distance_;
  absl::flat_hash_map<std::int32_t, std::vector<Pending>> of_thread_;
  std::size_t count_ = 0;
};

// Reads what threads say about what they do (OpenTelemetry's thread context), in the interrupts that sample
// them: a small BPF program of the kernel does it, which perf events call. Opening it takes rights (root, or
// CAP_BPF and CAP_PERFMON). After that everything goes through memory, which forked processes share.
class ThreadContextReader {
 public:
  // `between_samples`: how far apart two samples of a thread on one CPU are, at least.
  static Result<ThreadContextReader> open(std::size_t cpus, Nanoseconds between_samples);

  // Before any task inherits the event. An event that takes no such program (a tracepoint) has samples
  // without contexts.
  void attach(int event_fd) const;
  // Where the threads of a process have their variable; Kind::none: nowhere. False: no room for one more.
  bool set(Pid pid, const ThreadVariable& variable);
  void clear();

  // Takes over what has been read so far.
  void drain();
  // The context of a sample; it was there before the sample could be seen. Valid until forget_before().
  std::span<const std::byte> take(const InterruptKey& key, Nanoseconds time);
  void forget_before(Nanoseconds time) { pending_.forget_before(time); }

  // Contexts that wait for their samples.
  [[nodiscard]] std::size_t pending() const { return pending_.size(); }
  // Contexts for which the ring had no room.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  ThreadContextReader(ContextRing ring, UniqueFd table_fd, MappedRegion memory, UniqueFd program,
                      Nanoseconds between_samples)
      : ring_(std::move(ring)),
        table_fd_(std::move(table_fd)),
        memory_(std::move(memory)),
        program_(std::move(program)),
        pending_(between_samples) {}

  [[nodiscard]] ContextTable& table() const { return *reinterpret_cast<ContextTable*>(memory_.data()); }
  void take_record(std::span<const std::byte> record);

  ContextRing ring_;
  UniqueFd table_fd_;
  MappedRegion memory_;
  UniqueFd program_;
  PendingContexts pending_;
};

}  // namespace ddprof
