#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "debugfile/debug_files.hpp"
#include "process/file_registry.hpp"
#include "symbol/dwarf/debug_info.hpp"
#include "symbol/go_lines.hpp"
#include "symbol/symbol_table.hpp"

namespace ddprof {

// All that tells about the code of one file and is not in its own symbol table: debug information, in the
// file or beside it, and the symbols that were moved out of it. Open as long as this lives; for one thread.
class ModuleReader {
 public:
  // The finder must outlive this.
  ModuleReader(std::shared_ptr<const CodeFile> file, DebugFileFinder& finder, const ReadLimits& limits = {});

  // As DebugInfo::find, but takes every address: those about which nothing is known with no calls.
  std::size_t read(std::span<const std::uint64_t> addresses, const DebugInfo::Take& take,
                   const DebugInfo::KeepGoing& keep_going);

  // Whether its debug information is packed, and only a disk has room for it: limits with one were not given.
  [[nodiscard]] bool needs_scratch() const { return needs_scratch_; }
  [[nodiscard]] bool has_anything() const { return info_ || symbols_ != nullptr || go_lines_; }
  [[nodiscard]] bool has_lines() const { return info_.has_value(); }
  // "debug information", "symbols of /usr/lib/debug/…": for people. Empty when there is nothing.
  [[nodiscard]] std::string description() const;
  // What was refused or damaged, for people; empty when all is well.
  [[nodiscard]] std::string problem() const;
  // What debuginfod could be asked for.
  [[nodiscard]] const std::vector<BuildId>& missing() const { return files_.missing(); }

  [[nodiscard]] std::size_t memory_bytes() const;
  void drop_pages() const;

 private:
  [[nodiscard]] std::vector<Symbol> read_symbols(std::span<const std::uint64_t> addresses);
  void take_symbol(std::uint64_t address, const Symbol& symbol, const DebugInfo::Take& take);
  [[nodiscard]] bool is_own(const ElfFile* file) const { return file == &*file_->elf; }

  std::shared_ptr<const CodeFile> file_;
  DebugFiles files_;
  std::optional<DebugInfo> info_;
  std::string info_problem_;
  bool needs_scratch_ = false;
  const ElfFile* symbols_ = nullptr;  // another file than this one, with its symbols
  std::optional<GoLines> go_lines_;   // without debug information
  WorkBudget go_budget_;
  ReadLimits limits_;
};

}  // namespace ddprof
