#pragma once

#include <cstdint>

namespace ddprof {

// While this lives, the thread that made it works in short turns, and rests after each so that it takes no
// more than its share of a core. It rests only at the points that its work names (rest_point()), where it
// holds no lock.
class Turns {
 public:
  Turns();
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // How long all such threads rest: this many times as long as they have worked. 0, as at first: not at all,
  // and those that rest go on.
  static void set_rest(unsigned times);
};

// Between pieces of work of a millisecond or less. Does nothing on a thread that does not work in turns.
void rest_point();
// The same within short steps: every 256th call counts.
inline void rest_point_among_many() {
  thread_local std::uint8_t calls = 0;
  if (++calls == 0) rest_point();
}

}  // namespace ddprof
