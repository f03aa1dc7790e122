#include "process/file_threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/call_within.hpp"
#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

struct FileThreads::State : std::enable_shared_from_this<State> {
  struct Running {
    User user;
    Nanoseconds began;
  };
  using Lock = std::unique_lock<std::mutex>;
  struct Queue {
    std::deque<Job> now, later;

    [[nodiscard]] bool empty() const { return now.empty() && later.empty(); }
    Job take() {
      std::deque<Job>& first = now.empty() ? later : now;
      Job job = std::move(first.front());
      first.pop_front();
      return job;
    }
  };
  using Queues = std::map<User, Queue>;

  explicit State(const Limits& of) : limits(of) {}

  [[nodiscard]] bool has_hung(const Running& job, Nanoseconds now) const {
    return now - job.began > limits.patience;
  }
  [[nodiscard]] std::size_t count_hung(const User* user = nullptr) const {
    const Nanoseconds now = monotonic_now();
    return static_cast<std::size_t>(std::count_if(running.begin(), running.end(), [&](const Running& job) {
      return has_hung(job, now) && (user == nullptr || job.user == *user);
    }));
  }
  [[nodiscard]] bool is_served(User user) const {
    const Nanoseconds now = monotonic_now();
    return std::any_of(running.begin(), running.end(),
                       [&](const Running& job) { return job.user == user && !has_hung(job, now); });
  }

  // Of the users in turn.
  Queues::iterator next() {
    auto queue = queues.upper_bound(last);
    for (std::size_t left = queues.size(); left > 0; --left) {
      if (queue == queues.end()) queue = queues.begin();
      if (!is_served(queue->first)) return queue;
      ++queue;
    }
    return queues.end();
  }

  void start_thread_if_needed() {
    if (idle > 0 || next() == queues.end() || threads >= limits.threads + count_hung()) return;
    if (start_disposable_thread([self = shared_from_this()] { self->run(); })) ++threads;
  }

  void run() {
    Lock lock(mutex);
    while (wait_for_job(lock)) run_next(lock);
    --threads;
    changed.notify_all();
  }

  // Another file is often wanted soon.
  bool wait_for_job(Lock& lock) {
    constexpr Nanoseconds kIdle = 100ms;
    ++idle;
    const bool has_job =
        changed.wait_for(lock, kIdle, [this] { return is_stopping || next() != queues.end(); });
    --idle;
    return has_job && !is_stopping;
  }

  void run_next(Lock& lock) {
    const auto queue = next();
    last = queue->first;
    Job job = queue->second.take();
    if (queue->second.empty()) queues.erase(queue);
    const auto place = running.insert(running.end(), {last, monotonic_now()});
    start_thread_if_needed();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    running.erase(place);
    finished.fetch_add(1, std::memory_order_release);
    changed.notify_all();
  }

  const Limits limits;
  std::atomic<std::uint64_t> finished{0};
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  Queues queues;  // none is empty
  std::list<Running> running;
  User last;  // who was served
  std::size_t threads = 0, idle = 0;
  bool is_stopping = false;
};

FileThreads::FileThreads() : FileThreads(Limits()) {}

FileThreads::FileThreads(const Limits& limits) : limits_(limits), state_(std::make_shared<State>(limits)) {}

FileThreads::~FileThreads() {
  State::Lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->queues.clear();
  state_->changed.notify_all();
  state_->changed.wait_for(lock, limits_.last_patience, [this] { return state_->threads == 0; });
}

bool FileThreads::post(User user, Job job, Urgency urgency) {
  const std::lock_guard lock(state_->mutex);
  if (state_->count_hung(&user) >= limits_.hung_of_user || state_->count_hung() >= limits_.hung) return false;
  State::Queue& queue = state_->queues[user];
  (urgency == Urgency::now ? queue.now : queue.later).push_back(std::move(job));
  state_->start_thread_if_needed();
  state_->changed.notify_all();
  if (state_->threads > 0) return true;
  state_->queues.clear();  // holds this job alone
  return false;
}

Nanoseconds FileThreads::waiting_left(User user, bool is_large, Nanoseconds now) {
  if (now - second_ >= 1s) {
    second_ = now;
    waited_ = waited_for_large_ = {};
    waited_for_.clear();
  }
  const Nanoseconds half = limits_.most_waiting / 2;
  Nanoseconds left = limits_.most_waiting - waited_;
  if (is_large) left = std::min(left, half - waited_for_large_);
  if (user != 0U) left = std::min(left, half - waited_for_[user]);
  return std::max(left, Nanoseconds(0));
}

void FileThreads::wait_for(Nanoseconds most, const std::function<bool()>& is_done) {
  State::Lock lock(state_->mutex);
  state_->start_thread_if_needed();  // behind one that has hung
  state_->changed.wait_for(lock, most, is_done);
}

void FileThreads::wait(User user, bool is_large, const std::function<bool()>& is_done) {
  const Nanoseconds began = monotonic_now();
  wait_for(waiting_left(user, is_large, began), is_done);
  const Nanoseconds waited = monotonic_now() - began;
  waited_ += waited;
  if (is_large) waited_for_large_ += waited;
  waited_for_[user] += waited;
}

std::uint64_t FileThreads::finished() const { return state_->finished.load(std::memory_order_acquire); }

}  // namespace ddprof
