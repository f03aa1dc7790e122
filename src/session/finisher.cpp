#include "session/finisher.hpp"

#include <utility>

#include "base/turns.hpp"

namespace ddprof {

void Finisher::post_period(ClosedPeriod period) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= kQueueLength) {
      queue_.pop_front();
      dropped_++;
    }
    queue_.push_back(std::move(period));
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void Finisher::finish() {
  Turns::set_rest(0);  // the end is waited for
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  if (is_sending_) begin_last_patience();
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
  if (is_late) work_.give_up();
  thread_.join();
}

void Finisher::begin_last_patience() {
  if (!give_up_at_) give_up_at_ = std::chrono::steady_clock::now() + last_patience_;
}

void Finisher::begin_sending() {
  {
    std::lock_guard lock(mutex_);
    is_sending_ = true;
    if (is_finishing_) begin_last_patience();
  }
  changed_.notify_all();
}

void Finisher::end_sending() {
  std::lock_guard lock(mutex_);
  is_sending_ = false;
}

std::uint64_t Finisher::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

std::size_t Finisher::queued() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

void Finisher::run() {
  const Turns turns;
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || is_finishing_; });
    if (queue_.empty()) {
      is_done_ = true;
      changed_.notify_all();
      return;
    }
    const ClosedPeriod period = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work_.finish(period);
  }
}

}  // namespace ddprof
