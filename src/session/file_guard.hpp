#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "elf/read_limits.hpp"
#include "process/file_registry.hpp"
#include "session/suspect_files.hpp"

namespace ddprof {

// What is read of a file. Each is a parser of its own: what one of them fails on, the others may still read.
enum class FileUse : std::uint8_t { unwind_table, symbols, debug_info, generated_code, functions };
std::string_view name_of(FileUse use);

// The border at which one foreign file is read. Whatever it holds, it costs no more than itself: memory that
// cannot be had is an error of that file, and so is that a worker ended in the middle of it.
struct FileGuard {
  ReadLimits limits{};
  SuspectFiles* suspects = nullptr;  // null: nothing is remembered

  // Calls parse(), which returns a Result, unless the file is to be left alone.
  template <typename Parse>
  auto read(const CodeFile& file, FileUse use, Parse parse) const -> decltype(parse()) {
    bool has_memory = true;
    if (suspects == nullptr) return read_within_memory(use, parse, has_memory);
    const std::uint64_t number = number_of(file, use);
    if (suspects->is_left_alone(number, monotonic_now())) return left_alone(use);
    suspects->begin(number);
    auto done = read_within_memory(use, parse, has_memory);
    suspects->end(number);
    if (!has_memory) suspects->blame(number, monotonic_now());
    return done;
  }

  // The same in every worker of a run. The content of a file is part of it as far as the kernel tells when it
  // has changed: who copies a path and a build id makes another file.
  static std::uint64_t number_of(const CodeFile& file, FileUse use);

 private:
  // Our own code throws nothing; the standard library throws these two.
  template <typename Parse>
  auto read_within_memory(FileUse use, Parse& parse, bool& has_memory) const -> decltype(parse()) {
    try {
      return parse();
    } catch (const std::bad_alloc&) {
      has_memory = false;
    } catch (const std::length_error&) {
      has_memory = false;
    }
    return out_of_memory(use);
  }

  [[nodiscard]] Error out_of_memory(FileUse use) const;
  [[nodiscard]] static Error left_alone(FileUse use);
};

}  // namespace ddprof
