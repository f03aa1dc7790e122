#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "unwind/stack_case.hpp"

namespace ddprof {

// A case as a folder: case.txt, stack.bin and one module.N.unwind per module. The only part of this library
// that touches files: for developers' recordings and for tests.

// Creates the folder if need be; files of an earlier case in it are replaced.
[[nodiscard]] Result<void> write_stack_case(const std::filesystem::path& directory,
                                            const StackCase& stack_case);
[[nodiscard]] Result<StackCase> read_stack_case(const std::filesystem::path& directory);

}  // namespace ddprof
