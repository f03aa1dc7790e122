#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "base/result.hpp"

namespace ddprof {

// Runs work() in a process of its own and waits for its result at most `patience`. Nothing: there was none,
// and the process is left behind. For calls into file systems that may hang, in a process that becomes or
// waits for the program: a thread that hangs in the kernel keeps its process from exec and from ending, a
// process hinders no other. What work() changes in memory is lost.
std::optional<Result<void>> call_apart(std::chrono::milliseconds patience,
                                       const std::function<Result<void>()>& work);

// The same where a file system is mounted that may hang. Elsewhere work() is called right here: the two forks
// of the other way take a millisecond of each start.
std::optional<Result<void>> ask_file_system(std::chrono::milliseconds patience,
                                            const std::function<Result<void>()>& work);

}  // namespace ddprof
