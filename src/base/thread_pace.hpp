#pragma once

#include <ctime>

namespace ddprof {

// While this lives, the thread that made it works in short turns, and rests after each so that it takes no
// more than its share of a core. The kernel's clock of the thread tells when a turn is over, so that whatever
// the thread calls need not know of it. It may rest while it holds a lock.
class ThreadPace {
 public:
  ThreadPace();
  ~ThreadPace();
  ThreadPace(const ThreadPace&) = delete;
  ThreadPace& operator=(const ThreadPace&) = delete;

  // How long all such threads rest: this many times as long as they have worked. 0, as at first: not at all.
  static void set_rest(unsigned times);

 private:
  timer_t timer_{};
  bool has_timer_ = false;
};

}  // namespace ddprof
