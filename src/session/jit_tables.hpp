#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "process/file_registry.hpp"
#include "session/file_guard.hpp"
#include "symbol/jit_dump.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Takes what was appended to the file since the last time, a bounded part of it at once; a file that has
// become shorter is another one, and read from its start. True when there was anything.
Result<bool> read_growth(const JitFile& file, JitDump& dump);

// The unwind tables of generated code, from the jitdumps of its compilers. A dump is looked at while samples
// need it, every 10 ms at most, less often when that takes long: a new piece of code may have its table that
// much later than its first sample.
class JitTables {
 public:
  JitTables(const FileRegistry& files, RuleDictionary& rules, const FileGuard& guard = {})
      : files_(files), rules_(rules), guard_(guard) {}

  // From now on, `dump` tells of `code`.
  void add(FileId code, FileId dump);
  // Null when nothing tells of that code, or nothing has been read yet.
  [[nodiscard]] const UnwindTable* table(FileId code) const;
  // Reads what the dump has gained. True when there is another table: the old one is not to be used any more.
  bool refresh(FileId code, Nanoseconds now);
  // Drops what was not refreshed since the last call. True when that was anything, as above.
  bool forget_unused();
  [[nodiscard]] std::size_t table_bytes() const;

 private:
  struct Source {
    std::shared_ptr<const CodeFile> file;
    JitDump dump;
    UnwindTable table;
    Nanoseconds next_look{};
    bool was_used = true;
    bool is_broken = false;
  };

  // True when there is another table.
  Result<bool> read(Source& source);
  void compile(Source& source);

  const FileRegistry& files_;
  RuleDictionary& rules_;
  FileGuard guard_;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Source>> sources_;  // by FileId of the code
};

}  // namespace ddprof
