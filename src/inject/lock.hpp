#pragma once

#include <stdint.h>
#include <time.h>

#include "inject/system_calls.hpp"

namespace inject {

// For one thread at a time. The word holds the number of the process, so that a child that was forked while
// another thread of its parent had the lock can tell: that thread is not there any more.
class Lock {
 public:
  explicit Lock(uint32_t& holder) : holder_(holder), own_(static_cast<uint32_t>(system_call(SYS_getpid))) {
    while (true) {
      uint32_t now = 0;
      if (take(now) || (now != own_ && take(now))) return;
      const timespec longest{0, 10'000'000};
      system_call(SYS_futex, to_argument(&holder_), kWait, now, to_argument(&longest));
    }
  }
  ~Lock() {
    __atomic_store_n(&holder_, 0, __ATOMIC_RELEASE);
    system_call(SYS_futex, to_argument(&holder_), kWake, 1);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  static constexpr long kWait = 128, kWake = 129;  // FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE

  bool take(uint32_t& expected) {
    return __atomic_compare_exchange_n(&holder_, &expected, own_, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
  }

  uint32_t& holder_;
  uint32_t own_;
};

}  // namespace inject
