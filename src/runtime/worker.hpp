#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "collect/collector.hpp"
#include "runtime/profiling.hpp"
#include "session/continuity.hpp"

namespace ddprof {

// How a worker crashed, written by its signal handler into memory that it shares with the supervisor.
struct FaultRecord {
  static constexpr std::size_t kMaxFrames = 24;

  std::atomic<int> signal{0};  // 0: nothing
  std::uint64_t address = 0;   // that the fault is about
  std::size_t count = 0;
  std::array<std::uint64_t, kMaxFrames>
      frames{};  // in the program's file, where it is in that; else absolute
};

// In the worker: fatal signals leave a record, then do what they do. Sanitizers have better reports of their
// own; with them it does nothing.
void record_faults_in(FaultRecord& record);

// "SIGSEGV at 0x0 in ddprof+0x1234 ddprof+0x5678"
std::string describe(const FaultRecord& record);
std::string signal_name(int signal);

// Carries the notes of a collector (Handover) and their descriptors from a worker to its supervisor. The end
// of file means that the worker is gone.
struct NoteChannel {
  UniqueFd supervisor_end;
  UniqueFd worker_end;

  static Result<NoteChannel> open();
};

void send_note(int worker_end, std::span<const std::byte> note, int fd);

struct ReceivedNote {
  enum class Kind { note, nothing_yet, closed };
  Kind kind = Kind::closed;
  std::array<std::byte, Handover::kMaxNoteBytes> bytes{};
  std::size_t size = 0;
  UniqueFd fd;

  [[nodiscard]] std::span<const std::byte> note() const { return std::span(bytes).first(size); }
};
// Does not wait. What is too long for a note counts as nothing; an empty packet as the end of file.
ReceivedNote receive_note(int supervisor_end);

// Memory that the supervisor and its workers share. A worker parses what strangers wrote and may be made to
// write anything here: the supervisor uses nothing of it unchecked.
struct SharedState {
  Continuity continuity;
  FaultRecord fault;
  std::atomic<int> farewell{kNoFarewell};  // the status that a worker is about to end with

  static constexpr int kNoFarewell = -1;
};

// How a worker ends when it ends by itself. Any other way is a crash.
inline constexpr int kWorkDone = 0;
inline constexpr int kExportsFailed = 8;
inline constexpr int kNoWork = 9;      // it could not begin
inline constexpr int kReplaceMe = 16;  // plus the WorkerEnd

// The life of a worker, in a process of its own: reads the rings, unwinds, aggregates, names, exports. It
// ends by itself when the target has ended, on SIGTERM, or when its supervisor dies; on SIGUSR1, or when it
// has used up its budget, for a successor to go on. All signals are blocked when it is called.
[[noreturn]] void run_worker(PreparedProfiling& prepared, const Target& target,
                             const ProfilingRequest& request, SharedState& shared, UniqueFd notes,
                             pid_t supervisor);

}  // namespace ddprof
