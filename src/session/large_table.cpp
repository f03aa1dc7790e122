#include "session/large_table.hpp"

#include <utility>

namespace ddprof {

LargeTable::LargeTable(std::shared_ptr<const CodeFile> file, const WindowCompiler& compiler,
                       FileThreads& threads, const FileGuard& guard, RuleDictionary& rules,
                       const FileThreads::User& user)
    : file_(std::move(file)),
      compiler_(compiler),
      threads_(threads),
      guard_(guard),
      rules_(rules),
      user_(user),
      windows_(compiler.size()),
      rules_left_(rules.room_for_file()) {
  table_.set_windows(this);
}

template <typename Work>
bool LargeTable::run(std::shared_ptr<Job>& job, Work work) {
  if (!job) {
    auto next = std::make_shared<Job>();
    const auto run_work = [next, work, file = file_, guard = guard_] {
      work(*next, *file, guard);
      next->is_done.store(true, std::memory_order_release);
    };
    if (!threads_.post(user_, run_work)) return false;
    job = std::move(next);
    threads_.wait(user_, true, [&] { return job->is_done.load(std::memory_order_acquire); });
  }
  return job->is_done.load(std::memory_order_acquire);
}

const UnwindTable* LargeTable::find(std::uint64_t elf_address) {
  const auto number = compiler_.window_of(elf_address);
  if (!number) return nullptr;
  Window& window = windows_[*number];
  if (window.is_refused) return nullptr;
  if (!window.table) {
    const auto compile = [compiler = compiler_, number](Job& job, const CodeFile& file,
                                                        const FileGuard& guard) {
      job.table = guard.read(file, FileUse::unwind_table, [&]() -> Result<UnwindTable> {
        return compiler.compile(*number, job.rules, guard.limits);
      });
    };
    if (!run(window.job, compile)) {
      late_since_ = threads_.finished();
      problem_ = "unwind information: was not read in time for all samples";
      return nullptr;
    }
    take(window);
    if (!window.table) return nullptr;
  }
  // Its instructions will be followed.
  if (!has_no_return_ && window.table->find(elf_address) == RuleIndex::gap) read_no_return();
  return window.table.get();
}

void LargeTable::take(Window& window) {
  const std::shared_ptr<Job> job = std::move(window.job);
  if (!job->table->ok()) {
    window.is_refused = true;
    problem_ = job->table->error().message;
    return;
  }
  auto table = std::make_unique<UnwindTable>(*std::move(*job->table));
  if (table->counters().unread > 0) problem_ = "unwind information: too large to read";
  const std::size_t before = rules_.size();
  rules_.continue_file(rules_left_);
  table->translate(job->rules, rules_);
  rules_left_ -= std::min(rules_left_, rules_.size() - before);
  window.table = std::move(table);
}

void LargeTable::read_no_return() {
  const auto read = [](Job& job, const CodeFile& file, const FileGuard& guard) {
    const auto done = guard.read(file, FileUse::unwind_table, [&]() -> Result<void> {
      job.no_return = NoReturnFunctions::find(*file.elf);
      return {};
    });
    static_cast<void>(done);  // nothing is known of them then
    file.image.drop_pages();
  };
  if (!run(no_return_, read)) return;
  table_.set_no_return(std::move(no_return_->no_return));
  no_return_.reset();
  has_no_return_ = true;
}

std::size_t LargeTable::bytes() const {
  std::size_t bytes = table_.bytes();
  for (const Window& window : windows_) bytes += window.table ? window.table->bytes() : 0;
  return bytes;
}

}  // namespace ddprof
