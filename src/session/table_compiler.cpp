#include "session/table_compiler.hpp"

#include <utility>

namespace ddprof {

void TableCompiler::Job::run(const FileGuard& guard) {
  if (is_begun.exchange(true)) return;  // by the thread of another user
  table = guard.read(*file, FileUse::unwind_table, [&]() -> Result<CompiledTable> {
    if (auto windows = may_use_windows ? WindowCompiler::of(*file->elf) : std::nullopt)
      return CompiledTable{{}, *std::move(windows)};
    return CompiledTable{compile_unwind_table(*file->elf, rules, guard.limits), {}};
  });
  file->image.drop_pages();  // .eh_frame is not needed any more
  is_done.store(true, std::memory_order_release);
}

void TableCompiler::post(FileId id, const std::shared_ptr<const CodeFile>& file, FileThreads::User user) {
  std::shared_ptr<Job>& job = posted_[id];
  if (!job) {
    job = std::make_shared<Job>();
    job->file = file;
    job->may_use_windows = may_use_windows_;
  }
  if (job->is_begun || job->posted_for.contains(user)) return;
  if (threads_.post(user, [guard = guard_, job = job] { job->run(guard); })) job->posted_for.insert(user);
}

bool TableCompiler::is_pending(FileId id, FileThreads::User user) const {
  const auto posted = posted_.find(id);
  if (posted == posted_.end()) return false;
  const Job& job = *posted->second;
  return (job.is_begun || job.posted_for.contains(user)) && !job.is_done.load(std::memory_order_acquire);
}

std::optional<Result<CompiledTable>> TableCompiler::compile(FileId id,
                                                            const std::shared_ptr<const CodeFile>& file,
                                                            FileThreads::User user, RuleDictionary& rules) {
  post(id, file, user);
  const std::shared_ptr<Job> job = posted_[id];
  const auto is_done = [&] { return job->is_done.load(std::memory_order_acquire); };
  const bool comes = job->is_begun || job->posted_for.contains(user);
  if (comes && job->waited_for.insert(user).second)
    threads_.wait(user, file->image.size() > kSmallFile, is_done);
  if (!is_done()) return std::nullopt;
  posted_.erase(id);
  if (!job->table->ok()) return std::move(*job->table);
  CompiledTable compiled = std::move(*job->table).value();
  rules.start_file();
  compiled.table.translate(job->rules, rules);
  return compiled;
}

}  // namespace ddprof
