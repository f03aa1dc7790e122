#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/thread_variable.hpp"
#include "elf/thread_symbol.hpp"

namespace ddprof {

// What a thread publishes about what it is doing: OpenTelemetry's thread context (OTEP 4947). Texts point
// into the bytes that were parsed.
struct ThreadContext {
  struct Attribute {
    std::uint8_t key = 0;  // index into what the process publishes as threadlocal.attribute_key_map
    std::string_view text;
  };

  std::array<std::uint8_t, 16> trace_id{};  // in the order of W3C
  std::uint64_t span_id = 0;
  std::vector<Attribute> attributes;  // of each key the last
};

// None: it is not valid, or too short. Attributes end where the bytes do.
std::optional<ThreadContext> parse_thread_context(std::span<const std::byte> record);

// Reads memory of the process; false: it is not there.
using ReadTarget = std::function<bool(Address from, std::span<std::byte> to)>;

// Where threads have the variable that `symbol` describes. `bias` is what its file's addresses were moved by.
ThreadVariable locate_in_executable(const ThreadSymbol& symbol);
// By what the loader has written down for the library itself; none: it has not yet, or not in a known way.
std::optional<ThreadVariable> locate_in_library(const ThreadSymbol& symbol, std::uint64_t bias,
                                                const ReadTarget& read);

}  // namespace ddprof
