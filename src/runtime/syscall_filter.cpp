#include "runtime/syscall_filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace ddprof {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which numbers have system calls here?"
#endif

// The lower half of a 64-bit argument comes first on both.
constexpr std::uint32_t argument_offset(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + argument * 8;
}

constexpr sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter keep_bits(std::uint32_t mask) { return BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask); }
constexpr sock_filter answer(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
constexpr sock_filter refusal(int error_number) {
  return answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error_number));
}
constexpr sock_filter skip_unless_equal(std::uint32_t value, std::size_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(skipped));
}

}  // namespace

// x32 calls, of the same architecture, have numbers that no rule has.
SyscallFilter::SyscallFilter()
    : code_{load(offsetof(seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
            refusal(ENOSYS), load(offsetof(seccomp_data, nr))} {}

void SyscallFilter::add_rule(long call, const std::vector<sock_filter>& decision) {
  code_.push_back(skip_unless_equal(static_cast<std::uint32_t>(call), decision.size()));
  code_.insert(code_.end(), decision.begin(), decision.end());
}

SyscallFilter& SyscallFilter::allow(std::initializer_list<long> calls) {
  for (long call : calls) add_rule(call, {answer(SECCOMP_RET_ALLOW)});
  return *this;
}

SyscallFilter& SyscallFilter::refuse(int error_number, std::initializer_list<long> calls) {
  for (long call : calls) add_rule(call, {refusal(error_number)});
  return *this;
}

SyscallFilter& SyscallFilter::allow_if_any(long call, std::initializer_list<ArgumentTest> tests) {
  std::vector<Alternative> alternatives;
  for (const ArgumentTest& test : tests) alternatives.push_back({test});
  return allow_if_any(call, alternatives);
}

SyscallFilter& SyscallFilter::allow_if_any(long call, const std::vector<Alternative>& alternatives) {
  constexpr std::size_t kTestLength = 3;
  std::vector<sock_filter> decision;
  for (const Alternative& alternative : alternatives) {
    std::size_t left = alternative.size() * kTestLength + 1;  // of this alternative
    for (const ArgumentTest& test : alternative) {
      left -= kTestLength;
      decision.insert(decision.end(), {load(argument_offset(test.argument)), keep_bits(test.mask),
                                       skip_unless_equal(test.value, left)});
    }
    decision.push_back(answer(SECCOMP_RET_ALLOW));
  }
  decision.push_back(refusal(EPERM));
  add_rule(call, decision);
  return *this;
}

Result<void> SyscallFilter::install() && {
  code_.push_back(refusal(ENOSYS));
  sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
  // Threads that are there already get it too; a positive answer is the one that could not.
  long failed = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (failed == 0) return {};
  return errno_error(failed > 0 ? EBUSY : errno, "seccomp filter");
}

}  // namespace ddprof
