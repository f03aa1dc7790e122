#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

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

}  // namespace ddprof
