#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// An entry of a speedscope file has a name and nothing else to say whose it is:
// "worker · tid 125 · split · pid 123 · cpu". Parts that are not known are left out.
struct SpeedscopeTitle {
  std::string thread, tid, process, pid;
  std::string column;
  bool is_sum = false;  // all threads together: the same samples once more
};

std::string speedscope_title(const SpeedscopeTitle& title);

// The other way, for entries that we wrote ourselves.
SpeedscopeTitle parse_speedscope_title(std::string_view text);

}  // namespace ddprof
