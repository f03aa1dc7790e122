#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// The whole content of a small file. Works for /proc and /sys, whose files have no size. Never waits: a
// target can put a FIFO where a file was, and a worker must not hang on it.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64U << 20U);

// The same of a larger one, piece by piece.
Result<void> read_pieces(const std::string& path, const std::function<void(std::string_view)>& take);

// The whole content of what the user names as a command's input: "-" is standard input. Waits for writers, so
// that pipes, FIFOs and <(command) can be read.
Result<std::string> read_input(const std::string& path, std::size_t max_bytes);

}  // namespace ddprof
