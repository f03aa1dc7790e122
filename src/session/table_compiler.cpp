#include "session/table_compiler.hpp"

#include <utility>

#include "unwind/compile.hpp"

namespace ddprof {

void TableCompiler::post(FileId id, const std::shared_ptr<const CodeFile>& file, FileThreads::User user) {
  std::shared_ptr<Job>& job = posted_[id];
  if (job) return;
  job = std::make_shared<Job>();
  job->file = file;
  const bool is_posted = threads_.post(user, [guard = guard_, job] {
    job->table = guard.read(*job->file, FileUse::unwind_table, [&]() -> Result<UnwindTable> {
      return compile_unwind_table(*job->file->elf, job->rules, guard.limits);
    });
    job->file->image.drop_pages();  // .eh_frame is not needed any more
    job->is_done.store(true, std::memory_order_release);
  });
  if (is_posted) return;
  job->table = make_error(ErrorCode::exhausted, "unwind information: too many files of its user hang");
  job->is_done = true;
}

std::optional<Result<UnwindTable>> TableCompiler::compile(FileId id,
                                                          const std::shared_ptr<const CodeFile>& file,
                                                          FileThreads::User user, RuleDictionary& rules) {
  post(id, file, user);
  const std::shared_ptr<Job> job = posted_[id];
  const auto is_done = [&] { return job->is_done.load(std::memory_order_acquire); };
  if (!std::exchange(job->was_waited_for, true))
    threads_.wait(user, file->image.size() > kSmallFile, is_done);
  if (!is_done()) return std::nullopt;
  posted_.erase(id);
  if (!job->table->ok()) return std::move(*job->table);
  UnwindTable table = std::move(*job->table).value();
  rules.start_file();
  table.translate(job->rules, rules);
  return table;
}

}  // namespace ddprof
