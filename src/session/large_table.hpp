#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/file_registry.hpp"
#include "process/file_threads.hpp"
#include "session/file_guard.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

// The unwind table of a large file. A window of it is compiled on FileThreads when a stack first enters it;
// the sampling thread waits for that as it does for whole tables. For one thread.
class LargeTable final : public TableWindows {
 public:
  // All references outlive it. `user`: of the process whose stack is being unwound.
  LargeTable(std::shared_ptr<const CodeFile> file, const WindowCompiler& compiler, FileThreads& threads,
             const FileGuard& guard, RuleDictionary& rules, const FileThreads::User& user);

  // To be unwound by.
  [[nodiscard]] const UnwindTable& table() const { return table_; }
  const UnwindTable* find(std::uint64_t elf_address) override;

  // Why some of it was not read, for people; empty when all that was asked for is there.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // The number of jobs that were done when a window was asked for in vain: another may have come with later
  // ones.
  [[nodiscard]] std::optional<std::uint64_t> late_since() const { return late_since_; }
  void forget_late() { late_since_.reset(); }
  [[nodiscard]] std::size_t bytes() const;

 private:
  // What a thread makes. The rows of a window, or which functions do not return.
  struct Job {
    RuleDictionary rules{};
    std::optional<Result<UnwindTable>> table{};
    NoReturnFunctions no_return{};
    std::atomic<bool> is_done{false};
  };
  struct Window {
    std::shared_ptr<Job> job;  // that is on its way
    std::unique_ptr<const UnwindTable> table;
    bool is_refused = false;
  };

  // Posts it if it is new, and waits. True when it is done.
  template <typename Work>
  bool run(std::shared_ptr<Job>& job, Work work);
  void take(Window& window);
  void read_no_return();

  std::shared_ptr<const CodeFile> file_;
  WindowCompiler compiler_;
  FileThreads& threads_;
  FileGuard guard_;
  RuleDictionary& rules_;
  const FileThreads::User& user_;
  UnwindTable table_;
  std::vector<Window> windows_;
  std::shared_ptr<Job> no_return_;
  bool has_no_return_ = false;
  std::size_t rules_left_;  // that the file may add
  std::string problem_;
  std::optional<std::uint64_t> late_since_;
};

}  // namespace ddprof
