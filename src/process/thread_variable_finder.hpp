#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "base/ids.hpp"
#include "base/thread_variable.hpp"
#include "elf/thread_symbol.hpp"

namespace ddprof {

// Reads memory of the process; false: it is not there.
using ReadTarget = std::function<bool(Address from, std::span<std::byte> to)>;

// Where threads have the variable that `symbol` describes. `bias` is what its file's addresses were moved by.
ThreadVariable locate_in_executable(const ThreadSymbol& symbol);
// By what the loader has written down for the library itself; none: it has not yet, or not in a known way.
std::optional<ThreadVariable> locate_in_library(const ThreadSymbol& symbol, std::uint64_t bias,
                                                const ReadTarget& read);

}  // namespace ddprof
