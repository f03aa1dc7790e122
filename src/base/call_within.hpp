#pragma once

#include <signal.h>

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
  auto thread = start_quiet_thread([shared, work = std::move(work)]() mutable {
    Value value = work();
    std::lock_guard lock(shared->mutex);
    if (!shared->is_given_up) shared->value.emplace(std::move(value));
    shared->changed.notify_all();
  });
  if (!thread.joinable()) return std::nullopt;
  thread.detach();
  std::unique_lock lock(shared->mutex);
  shared->changed.wait_for(lock, stop, patience, [&] { return shared->value.has_value(); });
  shared->is_given_up = true;
  return std::exchange(shared->value, std::nullopt);
}

}  // namespace ddprof
