#include "session/table_compiler.hpp"

#include <algorithm>
#include <utility>

#include "base/call_within.hpp"
#include "base/clock.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

bool is_large(const CodeFile& file) { return file.image.size() > TableCompiler::kSmallFile; }

}  // namespace

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

Nanoseconds TableCompiler::waiting_left(const CodeFile& file, Nanoseconds now) {
  if (now - second_ >= 1s) {
    second_ = now;
    waited_ = waited_for_large_ = {};
    waited_for_.clear();
  }
  const Nanoseconds half = most_waiting_ / 2;
  Nanoseconds left = most_waiting_ - waited_;
  if (is_large(file)) left = std::min(left, half - waited_for_large_);
  if (file.owner != 0U) left = std::min(left, half - waited_for_[file.owner]);
  return std::max(left, Nanoseconds(0));
}

void TableCompiler::count_waiting(const CodeFile& file, Nanoseconds began) {
  const Nanoseconds waited = monotonic_now() - began;
  waited_ += waited;
  if (is_large(file)) waited_for_large_ += waited;
  waited_for_[file.owner] += waited;
}

std::optional<Result<UnwindTable>> TableCompiler::compile(FileId id,
                                                          const std::shared_ptr<const CodeFile>& file,
                                                          RuleDictionary& rules) {
  const Nanoseconds began = monotonic_now();
  const Nanoseconds left = waiting_left(*file, began);
  auto known = posted_.find(id);
  std::shared_ptr<Job> job = known != posted_.end() ? known->second : nullptr;
  const bool is_at_once = !is_large(*file) && left > Nanoseconds(0);
  if (!job && !is_at_once) job = post(file);
  if (!job) {  // small, or there is no thread to be had
    auto table = read(ReadingThread::sampling, *file, rules);
    count_waiting(*file, began);
    return table;
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, left, [&] { return job->table.has_value(); });
    count_waiting(*file, began);
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

std::shared_ptr<TableCompiler::Job> TableCompiler::take_job() {
  const auto worked_for = [this](const Job& job) -> Nanoseconds { return worked_for_[job.file->owner]; };
  const auto next = std::min_element(queue_.begin(), queue_.end(), [&](const auto& one, const auto& other) {
    return worked_for(*one) < worked_for(*other);
  });
  std::shared_ptr<Job> job = std::move(*next);
  queue_.erase(next);
  return job;
}

void TableCompiler::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    const std::shared_ptr<Job> job = take_job();
    lock.unlock();
    const Nanoseconds began = monotonic_now();
    auto table = read(ReadingThread::compiling, *job->file, job->rules);
    job->file->image.drop_pages();  // .eh_frame is not needed any more
    lock.lock();
    job->table = std::move(table);
    worked_for_[job->file->owner] += monotonic_now() - began;
    if (queue_.empty()) worked_for_.clear();
    finished_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }
}

}  // namespace ddprof
