#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/thread_variable.hpp"
#include "base/unique_fd.hpp"
#include "collect/bpf/context_program.hpp"
#include "collect/bpf/context_ring.hpp"
#include "collect/bpf/pending_contexts.hpp"

namespace ddprof {

// Reads what threads say about what they do (OpenTelemetry's thread context), in the interrupts that sample
// them: a small BPF program of the kernel does it, which perf events call. Opening it takes rights (root, or
// CAP_BPF and CAP_PERFMON). After that everything goes through memory, which forked processes share.
class ThreadContextReader {
 public:
  // `between_samples`: how far apart two samples of a thread on one CPU are, at least.
  static Result<ThreadContextReader> open(std::size_t cpus, Nanoseconds between_samples);

  // Before the event is inherited by anybody. An event that takes no such program (a tracepoint) has samples
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
