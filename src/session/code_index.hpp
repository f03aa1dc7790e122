#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "session/file_guard.hpp"
#include "session/jit_tables.hpp"
#include "session/large_table.hpp"
#include "session/table_compiler.hpp"
#include "unwind/module_map.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Joins what the process table knows (which file is mapped where) with what the unwinder needs (its compiled
// table). A table is compiled when the first sample of a process that maps its file is there, once per file
// and run.
class CodeIndex {
 public:
  CodeIndex(FileRegistry& files, FileThreads& threads, const FileGuard& guard = {})
      : files_(files), threads_(threads), guard_(guard) {
    compiler_.allow_windows(true);
  }

  // Whether its files are open and their tables compiled, or were missing when they were last asked for. If
  // not, that is begun.
  bool is_ready(const Process& process);
  // The modules of a process as it is now, after some waiting where it is not ready. Shared by forked
  // processes until one of them maps something.
  const ModuleMap& modules(const Process& process);
  [[nodiscard]] const RuleDictionary& rules() const { return rules_; }
  // Tables will be published, and are compiled in whole; the numbers of these rules are in use already.
  // Before any table is compiled.
  void begin_with(std::span<const ddprof_unwind_rule> rules) {
    compiler_.allow_windows(false);
    for (const ddprof_unwind_rule& rule : rules) rules_.intern(rule);
  }

  // One mapping per distinct piece of code that was asked for since the last forget_unused(), to stand for
  // all processes that map it elsewhere.
  [[nodiscard]] std::vector<CodeMapping> representatives() const;

  // Moves frames of files that were not open when they were sampled to where they are, if the files are now.
  void settle(AggregatedProfile& profile) const;

  // Drops the maps of address spaces that no sample has used since the last call, or that no process has any
  // more, and the tables of files that the registry has forgotten.
  void forget_unused();
  // Drops everything that can be made again.
  void forget_all();
  [[nodiscard]] std::size_t table_bytes() const;

  // Whether the unwind information of a file was not read, or not all of it.
  [[nodiscard]] bool is_unread(FileId id) const;
  // Why, with the path of the file, for people.
  [[nodiscard]] std::vector<std::string> problems() const;

 private:
  struct CachedMap {
    std::unique_ptr<ModuleMap> map;
    std::weak_ptr<const AddressSpace> space;
    bool was_used = false;
    FileId generated = FileId::none;  // code that a jitdump tells of
    // Some files are still being opened or compiled: it was filled when so many jobs were done.
    std::optional<std::uint64_t> finished{};
  };

  struct CachedTable {
    UnwindTable whole;
    std::unique_ptr<LargeTable> large;

    [[nodiscard]] const UnwindTable& table() const { return large ? large->table() : whole; }
  };

  const UnwindTable* table(FileId id, const Process& process);
  void forget_maps_with_late_windows();
  [[nodiscard]] Module make_module(const CodeMapping& mapping, const Process& process);
  void post_tables(const Process& process);
  void fill(CachedMap& cached, const Process& process);
  void forget_generated_maps();
  void add_representatives(const Process& process);

  FileRegistry& files_;
  FileThreads& threads_;
  FileGuard guard_;
  RuleDictionary rules_;
  TableCompiler compiler_{threads_, guard_};
  JitTables generated_{files_, threads_, rules_, guard_};
  absl::flat_hash_map<FileId, std::string> unread_;                   // why
  absl::flat_hash_map<FileId, std::unique_ptr<CachedTable>> tables_;  // null: there was nothing to compile
  FileThreads::User user_;  // of the process whose modules were asked for last
  std::uint64_t finished_jobs_ = 0;
  absl::flat_hash_map<std::uint64_t, CachedMap> maps_;  // by generation
  std::vector<CodeMapping> representatives_;
  absl::flat_hash_map<std::pair<FileId, std::uint64_t>, std::size_t>
      represented_;  // by file and file offset, into representatives_
};

}  // namespace ddprof
