#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/ids.hpp"
#include "process/file_registry.hpp"
#include "process/file_threads.hpp"
#include "session/file_guard.hpp"
#include "unwind/compile.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// What came of a file: its table, or for a large one how to compile parts of it.
struct CompiledTable {
  UnwindTable table;
  std::optional<WindowCompiler> windows;
};

// Compiles unwind tables on FileThreads: to read a mapped file is to wait for its file system. What takes
// longer than the sampling thread may wait is compiled meanwhile, and stacks end in that file until its table
// is there.
class TableCompiler {
 public:
  // Others are large: see FileThreads.
  static constexpr std::size_t kSmallFile = std::size_t{4} << 20U;

  TableCompiler(FileThreads& threads, const FileGuard& guard) : threads_(threads), guard_(guard) {}

  // Of large files parts are compiled when they are needed: see LargeTable.
  void allow_windows(bool may_use_windows) { may_use_windows_ = may_use_windows; }

  // Begins with it, for a process of this user. What processes of several users map is in the queue of each
  // of them, and the first to come to it compiles it: libc does not wait behind the large files of one.
  void post(FileId id, const std::shared_ptr<const CodeFile>& file, FileThreads::User user);
  // Whether it is being compiled, or will be.
  [[nodiscard]] bool is_pending(FileId id, FileThreads::User user) const;
  // The table, with its rules in `rules`. Nothing: not yet; to be asked again once more jobs are done.
  std::optional<Result<CompiledTable>> compile(FileId id, const std::shared_ptr<const CodeFile>& file,
                                               FileThreads::User user, RuleDictionary& rules);
  // Tables of other files are not asked for any more.
  void forget_except(const CodeFiles& files) {
    absl::erase_if(posted_, [&](const auto& entry) { return !files.contains(entry.first); });
  }

 private:
  struct Job {
    std::shared_ptr<const CodeFile> file;
    absl::flat_hash_set<FileThreads::User> posted_for{};
    absl::flat_hash_set<FileThreads::User> waited_for{};  // once for each is enough: it may hang
    std::atomic<bool> is_begun{false};
    RuleDictionary rules{};
    bool may_use_windows = false;
    std::optional<Result<CompiledTable>> table{};
    std::atomic<bool> is_done{false};

    void run(const FileGuard& guard);
  };

  FileThreads& threads_;
  FileGuard guard_;
  bool may_use_windows_ = false;
  absl::flat_hash_map<FileId, std::shared_ptr<Job>> posted_;  // and not taken yet
};

}  // namespace ddprof
