#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

// A seccomp program: a list of rules by system call, tried in order; the first one for a call decides.
// Whatever has no rule, or comes from another architecture's table of calls, is refused with ENOSYS.
class SyscallFilter {
 public:
  // Holds when the masked lower half of an argument has this value. Pointers cannot be followed.
  struct ArgumentTest {
    unsigned argument = 0;
    std::uint32_t mask = ~0U;
    std::uint32_t value = 0;
  };

  SyscallFilter();

  SyscallFilter& allow(std::initializer_list<long> calls);
  SyscallFilter& refuse(int error_number, std::initializer_list<long> calls);
  // Allowed when one of the tests holds, else not permitted.
  SyscallFilter& allow_if_any(long call, std::initializer_list<ArgumentTest> tests);
  // Allowed when all tests of one of the alternatives hold.
  using Alternative = std::vector<ArgumentTest>;
  SyscallFilter& allow_if_any(long call, const std::vector<Alternative>& alternatives);

  // For all threads of this process, and for good. Needs no_new_privs, or CAP_SYS_ADMIN.
  Result<void> install() &&;

 private:
  void add_rule(long call, const std::vector<sock_filter>& decision);

  std::vector<sock_filter> code_;
};

}  // namespace ddprof
