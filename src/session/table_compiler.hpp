#pragma once

#include <absl/container/flat_hash_map.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/ids.hpp"
#include "process/file_registry.hpp"
#include "session/file_guard.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Compiles unwind tables for the sampling thread. While that thread waits nothing empties the rings, and they
// hold less than a second: many files, or one that takes long, would cost samples of every process. So it
// waits at most `kMostWaiting` of each second; what takes longer is compiled meanwhile, and stacks end in
// that file until its table is there. Large files take at most half of that, and so do files of one owner
// other than root; the thread serves the owner first for whom it has worked least. So the files of one user
// do not delay those of another.
class TableCompiler {
 public:
  static constexpr Nanoseconds kMostWaiting = std::chrono::milliseconds(300);
  // Compiled at once: to hand it over would take longer.
  static constexpr std::size_t kSmallFile = std::size_t{4} << 20U;

  explicit TableCompiler(const FileGuard& guard, Nanoseconds most_waiting = kMostWaiting)
      : guard_(guard), most_waiting_(most_waiting) {}
  ~TableCompiler();
  TableCompiler(const TableCompiler&) = delete;
  TableCompiler& operator=(const TableCompiler&) = delete;

  // The table, with its rules in `rules`. Nothing: not yet; to be asked again once finished() has changed.
  std::optional<Result<UnwindTable>> compile(FileId id, const std::shared_ptr<const CodeFile>& file,
                                             RuleDictionary& rules);
  // Tables of other files are not asked for any more.
  void forget_except(const CodeFiles& files) {
    absl::erase_if(posted_, [&](const auto& entry) { return !files.contains(entry.first); });
  }
  [[nodiscard]] std::uint64_t finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  struct Job {
    std::shared_ptr<const CodeFile> file;
    RuleDictionary rules{};
    std::optional<Result<UnwindTable>> table{};
  };

  [[nodiscard]] Result<UnwindTable> read(ReadingThread reader, const CodeFile& file,
                                         RuleDictionary& rules) const;
  using Owner = std::optional<std::uint32_t>;

  [[nodiscard]] Nanoseconds waiting_left(const CodeFile& file, Nanoseconds now);
  void count_waiting(const CodeFile& file, Nanoseconds began);
  std::shared_ptr<Job> post(const std::shared_ptr<const CodeFile>& file);
  std::shared_ptr<Job> take_job();
  void run();

  FileGuard guard_;
  Nanoseconds most_waiting_;
  Nanoseconds second_{};  // that what follows is of
  Nanoseconds waited_{};
  Nanoseconds waited_for_large_{};
  absl::flat_hash_map<Owner, Nanoseconds> waited_for_;
  absl::flat_hash_map<FileId, std::shared_ptr<Job>> posted_;  // and not taken yet
  std::thread thread_;                                        // started by the first that is large
  std::atomic<std::uint64_t> finished_{0};

  std::mutex mutex_;  // guards what follows, and the tables of jobs
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  absl::flat_hash_map<Owner, Nanoseconds> worked_for_;  // since the queue was last empty
  bool is_stopping_ = false;
};

}  // namespace ddprof
