#pragma once

#include <absl/container/flat_hash_map.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "process/file_registry.hpp"
#include "process/file_threads.hpp"
#include "session/file_guard.hpp"
#include "symbol/jit_dump.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Takes what was appended to the file since the last time, a bounded part of it at once; a file that has
// become shorter is another one, and read from its start. True when there was anything.
Result<bool> read_growth(const JitFile& file, JitDump& dump);

// The unwind tables of generated code, from the jitdumps of its compilers, which FileThreads read. A dump is
// looked at while samples need it, every 10 ms at most, less often when that takes long: a new piece of code
// may have its table that much later than its first sample.
class JitTables {
 public:
  JitTables(const FileRegistry& files, FileThreads& threads, RuleDictionary& rules,
            const FileGuard& guard = {})
      : files_(files), threads_(threads), rules_(rules), guard_(guard) {}

  // From now on, `dump` tells of `code`.
  void add(FileId code, FileId dump);
  // Null when nothing tells of that code, or nothing has been read yet.
  [[nodiscard]] const UnwindTable* table(FileId code) const;
  // Reads what the dump has gained, for a process of this user. True when there is another table: the old one
  // is not to be used any more.
  bool refresh(FileId code, FileThreads::User user, Nanoseconds now);
  // Drops what was not refreshed since the last call. True when that was anything, as above.
  bool forget_unused();
  [[nodiscard]] std::size_t table_bytes() const;

 private:
  // A thread's alone while it reads.
  struct Reading {
    std::shared_ptr<const CodeFile> file;
    FileGuard guard;
    JitDump dump;
    std::optional<RuleDictionary> rules{};  // of the table alone
    UnwindTable table{};
    Nanoseconds took{};
    bool is_new = false;  // the table is another one
    bool is_broken = false;
    std::atomic<bool> is_done{true};

    Reading(std::shared_ptr<const CodeFile> of, const FileGuard& by)
        : file(std::move(of)), guard(by), dump(by.limits) {}
    [[nodiscard]] bool has_grown() const;
    void read();
    Result<bool> read_and_compile();
  };
  struct Source {
    std::shared_ptr<Reading> reading;
    UnwindTable table;
    Nanoseconds next_look{};
    bool is_taken = true;  // what was read
    bool was_used = true;
  };

  const FileRegistry& files_;
  FileThreads& threads_;
  RuleDictionary& rules_;
  FileGuard guard_;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Source>> sources_;  // by FileId of the code
};

}  // namespace ddprof
