#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace ddprof {

// A thread that leaves all signals to those that wait for them. Not joinable when the system has none left.
template <typename Work>
[[nodiscard]] std::thread start_quiet_thread(Work work) {
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error&) {  // the only way in which it says so
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// Starts work() on a thread that nothing waits for. False when the system has none left. Its stack is small:
// threads that hang are left behind, and stacks count against the limit of our memory (RLIMIT_DATA).
template <typename Work>
[[nodiscard]] bool start_disposable_thread(Work work) {
  constexpr std::size_t kStackBytes = std::size_t{512} << 10U;
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  pthread_attr_t attributes{};
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto owned = std::make_unique<Work>(std::move(work));
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*std::unique_ptr<Work>(static_cast<Work*>(argument)))();
    return nullptr;
  };
  const bool is_started = ::pthread_create(&thread, &attributes, run, owned.get()) == 0;
  if (is_started) static_cast<void>(owned.release());  // the thread's now
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return is_started;
}

// Runs work() on a thread of its own and waits for its result at most `patience`, or until `stop` is
// requested. Nothing: it was given up. The thread is then left behind, and whatever it returns in the end is
// destroyed there; so `work` must own all that it uses. For calls that cannot be cancelled and may never
// return: open() on a file system whose server is gone, a look-up of a name.
template <typename Work, typename Value = std::invoke_result_t<Work>>
std::optional<Value> call_within(std::chrono::milliseconds patience, Work work, std::stop_token stop = {}) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<Value> value;
    bool is_given_up = false;
  };
  auto shared = std::make_shared<Shared>();
  const bool is_started = start_disposable_thread([shared, work = std::move(work)]() mutable {
    Value value = work();
    std::lock_guard lock(shared->mutex);
    if (!shared->is_given_up) shared->value.emplace(std::move(value));
    shared->changed.notify_all();
  });
  if (!is_started) return std::nullopt;
  std::unique_lock lock(shared->mutex);
  shared->changed.wait_for(lock, stop, patience, [&] { return shared->value.has_value(); });
  shared->is_given_up = true;
  return std::exchange(shared->value, std::nullopt);
}

// Several such calls into one place, such as a file system. While one that was given up still hangs, others
// fail at once: a place that hangs costs one thread. Copies are of the same place.
class PatientCalls {
 public:
  explicit PatientCalls(std::chrono::milliseconds patience) : patience_(patience) {}

  template <typename Work>
  std::optional<std::invoke_result_t<Work>> call(Work work) const {
    if (state_->is_hung && state_->running > 0) return std::nullopt;
    auto value = call_within(
        patience_, [running = Running(state_), work = std::move(work)]() mutable { return work(); });
    state_->is_hung = !value;
    return value;
  }

 private:
  struct State {
    std::atomic<bool> is_hung{false};
    std::atomic<int> running{0};
  };
  // For as long as a call has not returned.
  class Running {
   public:
    explicit Running(std::shared_ptr<State> state) : state_(std::move(state)) { ++state_->running; }
    Running(Running&& other) noexcept = default;
    Running& operator=(Running&&) = delete;
    ~Running() {
      if (state_) --state_->running;
    }

   private:
    std::shared_ptr<State> state_;
  };

  std::chrono::milliseconds patience_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace ddprof
