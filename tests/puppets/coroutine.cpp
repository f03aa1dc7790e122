// coroutine SECONDS: burns in a coroutine of C++20 that waits for another one. Their frames are on the heap,
// and on the stack of the function that resumes them while they run.
#include <coroutine>
#include <exception>

#include "burn.h"

namespace {

struct Task {
  struct promise_type {
    std::coroutine_handle<> waiting;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Resume {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
          return done.promise().waiting ? done.promise().waiting : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return Resume{};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  std::coroutine_handle<promise_type> handle;

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) {
    handle.promise().waiting = waiting;
    return handle;
  }
  void await_resume() { handle.destroy(); }
};

Task inner(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  co_return;
}

Task outer(uint64_t nanoseconds) {
  co_await inner(nanoseconds / 2);
  burn_ns(nanoseconds / 2);
}

NOINLINE void resume_once() {
  const Task task = outer(2000000);
  task.handle.resume();
  task.handle.destroy();
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t deadline = thread_cpu_ns() + seconds_to_ns(argument(argc, argv, 1, "1"));
  while (thread_cpu_ns() < deadline) resume_once();
  return 0;
}
