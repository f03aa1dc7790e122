#pragma once

#include <cstdint>

#include "base/ids.hpp"

namespace ddprof {

// How live bytes have changed between two moments.
struct LiveGrowth {
  std::int64_t before = 0, after = 0;  // bytes
  Nanoseconds over{};
  bool is_view = false;    // the profile holds what has grown, and nothing else
  std::int64_t freed = 0;  // bytes of stacks that have fewer now, in such a view
};

}  // namespace ddprof
