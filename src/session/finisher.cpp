#include "session/finisher.hpp"

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
  {
    std::lock_guard lock(mutex_);
    is_finishing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Finisher::Outcome Finisher::outcome() const {
  std::lock_guard lock(mutex_);
  return outcome_;
}

void Finisher::run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() || is_finishing_; });
    if (queue_.empty()) return;
    ClosedPeriod period = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    send(period);
  }
}

void Finisher::send(const ClosedPeriod& period) {
  if (!namer_ || must_shrink_.exchange(false)) namer_.emplace(naming_);
  auto sent = destination_.send(namer_->name(period), period.sequence);
  std::lock_guard lock(mutex_);
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
  continuity_.commit(legacy);
}

}  // namespace ddprof
