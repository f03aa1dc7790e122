#pragma once

#include <memory>
#include <span>
#include <string>

#include "process/file_registry.hpp"

namespace ddprof {

// Why libddprof.so in the target has seen no allocation: "redis-server has an allocator of its own". `files`
// are those that the process has mapped for execution. Empty: nothing is known against it; the program may
// have allocated next to nothing.
[[nodiscard]] std::string why_unseen(const CodeFile& program,
                                     std::span<const std::shared_ptr<const CodeFile>> files);

}  // namespace ddprof
