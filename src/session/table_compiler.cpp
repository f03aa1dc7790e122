#include "session/table_compiler.hpp"

#include <algorithm>
#include <utility>

#include "base/call_within.hpp"
#include "base/clock.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

using namespace std::chrono_literals;

TableCompiler::~TableCompiler() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();  // what one file may cost is bounded
}

Result<UnwindTable> TableCompiler::read(ReadingThread reader, const CodeFile& file,
                                        RuleDictionary& rules) const {
  return guard_.read(reader, file, FileUse::unwind_table, [&]() -> Result<UnwindTable> {
    return compile_unwind_table(*file.elf, rules, guard_.limits);
  });
}

Nanoseconds TableCompiler::waiting_left(Nanoseconds now) {
  if (now - second_ >= 1s) {
    second_ = now;
    waited_ = {};
  }
  return std::max(most_waiting_ - waited_, Nanoseconds(0));
}

std::optional<Result<UnwindTable>> TableCompiler::compile(FileId id,
                                                          const std::shared_ptr<const CodeFile>& file,
                                                          RuleDictionary& rules) {
  const Nanoseconds began = monotonic_now();
  const Nanoseconds left = waiting_left(began);
  auto known = posted_.find(id);
  std::shared_ptr<Job> job = known != posted_.end() ? known->second : nullptr;
  const bool is_small = file->image.size() <= kSmallFile && left > Nanoseconds(0);
  if (!job && !is_small) job = post(file);
  if (!job) {  // small, or there is no thread to be had
    auto table = read(ReadingThread::sampling, *file, rules);
    waited_ += monotonic_now() - began;
    return table;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, left, [&] { return job->table.has_value(); });
    waited_ += monotonic_now() - began;
    if (!job->table) {
      posted_[id] = std::move(job);
      return std::nullopt;
    }
  }
  posted_.erase(id);
  if (!job->table->ok()) return std::move(*job->table);
  UnwindTable table = std::move(*job->table).value();
  rules.start_file();
  table.translate(job->rules, rules);
  return table;
}

std::shared_ptr<TableCompiler::Job> TableCompiler::post(const std::shared_ptr<const CodeFile>& file) {
  if (!thread_.joinable()) thread_ = start_quiet_thread([this] { run(); });
  if (!thread_.joinable()) return nullptr;
  auto job = std::make_shared<Job>();
  job->file = file;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(job);
  }
  changed_.notify_all();
  return job;
}

void TableCompiler::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto table = read(ReadingThread::compiling, *job->file, job->rules);
    job->file->image.drop_pages();  // .eh_frame is not needed any more
    lock.lock();
    job->table = std::move(table);
    finished_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace ddprof
