#include "session/finisher.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

void Finisher::post_period(ClosedPeriod period) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= kQueueLength) {
      queue_.pop_front();
      outcome_.dropped++;
    }
    queue_.push_back(std::move(period));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void Finisher::finish() {
  ThreadPace::set_rest(0);  // somebody waits for the end
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  if (is_delivering_) begin_last_patience();
  changed_.notify_all();
  while (!is_done_) {
    if (!give_up_at_) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, *give_up_at_) == std::cv_status::timeout) {
      break;
    }
  }
  const bool is_late = !is_done_;
  lock.unlock();
  if (is_late) destination_.give_up();
  thread_.join();
}

void Finisher::begin_last_patience() {
  if (!give_up_at_) give_up_at_ = Clock::now() + last_patience_;
}

Finisher::Outcome Finisher::outcome() const {
  std::lock_guard lock(mutex_);
  Outcome outcome = outcome_;
  outcome.queued = queue_.size();
  outcome.delivery = destination_.counters();
  return outcome;
}

void Finisher::run() {
  const ThreadPace pace;
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || is_finishing_; });
    if (queue_.empty()) {
      is_done_ = true;
      changed_.notify_all();
      return;
    }
    ClosedPeriod period = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    send(period);
  }
}

Result<Delivery> Finisher::deliver(const Batch& batch) {
  {
    std::lock_guard lock(mutex_);
    is_delivering_ = true;
    if (is_finishing_) begin_last_patience();
  }
  changed_.notify_all();
  auto sent = destination_.send(batch);
  std::lock_guard lock(mutex_);
  is_delivering_ = false;
  return sent;
}

void Finisher::send(const ClosedPeriod& period) {
  if (!namer_ || must_shrink_.exchange(false)) namer_.emplace(naming_);
  const Nanoseconds cpu_before = namer_->cpu_time();
  const Batch batch = namer_->name(period);
  const Nanoseconds naming_cpu = namer_->cpu_time() - cpu_before;
  auto sent = deliver(batch);
  std::lock_guard lock(mutex_);
  outcome_.naming_cpu += std::max(naming_cpu, Nanoseconds(0));
  outcome_.modules = namer_->modules();
  if (sent) {
    outcome_.sent++;
  } else {
    outcome_.failed++;
    if (!outcome_.first_error) outcome_.first_error = std::move(sent).error();
  }
  Legacy legacy = period.legacy;
  legacy.sent += outcome_.sent;
  legacy.failed += outcome_.failed;
  legacy.dropped += outcome_.dropped;
  legacy.spool_dropped += destination_.counters().dropped;
  continuity_.commit(legacy);
}

}  // namespace ddprof
