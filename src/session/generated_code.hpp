#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "process/jit_runtime.hpp"
#include "session/closed_period.hpp"

namespace ddprof {

// How many samples of a process passed through code that it has generated, and what is missing of them.
struct GeneratedCodeUse {
  Pid pid{};
  std::string process;
  JitRuntime runtime = JitRuntime::unknown;
  bool has_names = true;     // of some of that code
  std::int64_t samples = 0;  // of the process
  std::int64_t through = 0;  // those with a frame in it
  std::int64_t cut = 0;      // those that end there, because their callers cannot be found
};

// Of a period, in order of PIDs. Whether there are names is left open.
[[nodiscard]] std::vector<GeneratedCodeUse> generated_code_in(const ClosedPeriod& period);

// What would help, a sentence for each remedy; none where it would change less than a percent of a process's
// samples. Small pieces of code that libraries generate (libffi) are no reason to say anything.
[[nodiscard]] std::vector<std::string> generated_code_hints(std::span<const GeneratedCodeUse> uses);

}  // namespace ddprof
