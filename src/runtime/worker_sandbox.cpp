#include "runtime/worker_sandbox.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.hpp"
#include "runtime/privileges.hpp"

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

namespace {

// Calls that only the older of the two architectures has; newer C libraries use those with "at" everywhere.
void allow_old_calls([[maybe_unused]] SyscallFilter& filter) {
#if defined(__x86_64__)
  filter.allow({SYS_open,   SYS_stat,         SYS_lstat,      SYS_access,  SYS_readlink, SYS_poll,
                SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_pipe,     SYS_dup2,
                SYS_mkdir,  SYS_rmdir,        SYS_rename,     SYS_unlink,  SYS_link,     SYS_chmod,
                SYS_time,   SYS_getdents,     SYS_arch_prctl});
#endif
}

// Calls that Debian 12's headers do not name. They have one number everywhere.
constexpr long kFutexWake = 454;  // Linux 6.7
constexpr long kFutexWait = 455;
constexpr long kMseal = 462;  // Linux 6.10

void allow_memory_and_threads(SyscallFilter& filter) {
  filter.allow({SYS_futex,
                SYS_futex_waitv,
                kFutexWake,
                kFutexWait,
                SYS_brk,
                SYS_munmap,
                SYS_mremap,
                SYS_madvise,
                kMseal,
                SYS_membarrier,
                SYS_rseq,
                SYS_set_robust_list,
                SYS_get_robust_list,
                SYS_set_tid_address,
                SYS_mincore,
                SYS_sched_yield,
                SYS_sched_getaffinity,
                SYS_sched_getparam,
                SYS_sched_getscheduler,
                SYS_getcpu,
                SYS_exit,
                SYS_exit_group});
  // No code is made, and none is loaded: a file can be written first. See load_name_services().
  filter.allow_if_any(SYS_mmap, {{.argument = 2, .mask = PROT_EXEC, .value = 0}});
  filter.allow_if_any(SYS_mprotect, {{.argument = 2, .mask = PROT_EXEC, .value = 0}});
  // Threads yes, processes no. What clone3 is asked for lies in memory, out of sight: who is told that there
  // is no such call asks clone.
  filter.allow_if_any(SYS_clone, {{.argument = 0, .mask = CLONE_THREAD, .value = CLONE_THREAD}});
}

void allow_files(SyscallFilter& filter) {
  filter.allow({SYS_read,
                SYS_pread64,
                SYS_readv,
                SYS_preadv,
                SYS_preadv2,
                SYS_write,
                SYS_pwrite64,
                SYS_writev,
                SYS_pwritev,
                SYS_pwritev2,
                SYS_lseek,
                SYS_openat,
                SYS_openat2,
                SYS_close,
                SYS_close_range,
                SYS_fstat,
                SYS_newfstatat,
                SYS_statx,
                SYS_statfs,
                SYS_fstatfs,
                SYS_faccessat,
                SYS_faccessat2,
                SYS_readlinkat,
                SYS_getdents64,
                SYS_getcwd,
                SYS_flock,
                SYS_dup,
                SYS_dup3,
                SYS_fadvise64,
                SYS_readahead,
                SYS_copy_file_range,
                SYS_sendfile});
  filter.allow({SYS_mkdirat, SYS_renameat2, SYS_renameat, SYS_unlinkat, SYS_linkat, SYS_fchmod, SYS_fchmodat,
                SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_utimensat, SYS_umask});
}

// Files that another user names are opened with the rights of that user, by a thread that takes them on
// (base/foreign_file): of all calls in this list, those that open files alone go by these. Capabilities can
// only be given up: the process has none that it does not use.
void allow_less_rights(SyscallFilter& filter) {
  filter.allow({SYS_setgroups, SYS_setfsgid, SYS_setfsuid, SYS_capset});
}

// Descriptors can be set to send signals to any process; not by us.
void allow_descriptor_flags(SyscallFilter& filter) {
  using Test = SyscallFilter::ArgumentTest;
  auto command = [](int value) { return Test{.argument = 1, .value = static_cast<std::uint32_t>(value)}; };
  filter.allow_if_any(
      SYS_fcntl, {command(F_DUPFD), command(F_DUPFD_CLOEXEC), command(F_GETFD), command(F_SETFD),
                  command(F_GETFL), command(F_SETFL), command(F_GETLK), command(F_SETLK), command(F_SETLKW),
                  command(F_OFD_GETLK), command(F_OFD_SETLK), command(F_OFD_SETLKW), command(F_ADD_SEALS),
                  command(F_GET_SEALS), command(F_GETPIPE_SZ), command(F_SETPIPE_SZ)});
}

void allow_waiting_and_talking(SyscallFilter& filter) {
  filter.allow({SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2,
                SYS_eventfd2, SYS_pipe2, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
                SYS_signalfd4, SYS_pidfd_open, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime,
                SYS_clock_getres, SYS_gettimeofday, SYS_restart_syscall});
  filter.allow({SYS_connect, SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg,
                SYS_shutdown, SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
                SYS_socketpair});
  // Agents and servers, nothing raw. The C library asks netlink which addresses the machine has, and does
  // without: it would be the way to change them.
  constexpr std::uint32_t kType = 0xf;  // SOCK_TYPE_MASK of the kernel; the rest are flags
  std::vector<SyscallFilter::Alternative> sockets;
  for (const std::uint32_t family : {AF_UNIX, AF_INET, AF_INET6}) {
    for (const std::uint32_t type : {SOCK_STREAM, SOCK_DGRAM})
      sockets.push_back({{.argument = 0, .value = family}, {.argument = 1, .mask = kType, .value = type}});
  }
  filter.allow_if_any(SYS_socket, sockets);
}

void allow_looking_around(SyscallFilter& filter) {
  filter.allow({SYS_getpid,  SYS_gettid,      SYS_getppid,   SYS_getuid,    SYS_geteuid,
                SYS_getgid,  SYS_getegid,     SYS_getresuid, SYS_getresgid, SYS_getgroups,
                SYS_getpgid, SYS_getsid,      SYS_getrusage, SYS_times,     SYS_uname,
                SYS_sysinfo, SYS_getpriority, SYS_capget,    SYS_getrandom, SYS_process_vm_readv});
}

void allow_own_affairs(SyscallFilter& filter, std::span<const NeededCall> needed) {
  auto self = static_cast<std::uint32_t>(::getpid());
  filter.allow({SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
                SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_sigaltstack});
  filter.allow_if_any(SYS_sched_setaffinity, {{.value = 0}, {.value = self}});
  filter.allow_if_any(SYS_kill, {{.value = self}});
  filter.allow_if_any(SYS_tgkill, {{.value = self}});
  filter.allow_if_any(SYS_prlimit64, {{.value = 0}, {.value = self}});
  filter.allow_if_any(SYS_prctl, {{.value = PR_SET_NAME},
                                  {.value = PR_GET_NAME},
                                  {.value = PR_SET_PDEATHSIG},
                                  {.value = PR_GET_DUMPABLE},
                                  {.value = PR_SET_DUMPABLE},
                                  {.value = PR_SET_VMA},
                                  {.value = PR_GET_NO_NEW_PRIVS},
                                  {.value = PR_SET_NO_NEW_PRIVS},
                                  {.value = PR_SET_TIMERSLACK}});
  // What collecting needs, and harmless questions to terminals and sockets; typing into the user's terminal
  // is not among them.
  std::vector<SyscallFilter::Alternative> requests;
  for (const NeededCall& call : needed) {
    if (call.number != SYS_ioctl)
      filter.allow({call.number});
    else
      requests.push_back({{.argument = 1,
                           .mask = _IOC_TYPEMASK << _IOC_TYPESHIFT,
                           .value = call.ioctl_type << _IOC_TYPESHIFT}});
  }
  for (const std::uint32_t request : {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO})
    requests.push_back({{.argument = 1, .value = request}});
  filter.allow_if_any(SYS_ioctl, requests);
}

// ENOSYS would do, but the reader of a trace should see that these were meant.
void refuse_dangers(SyscallFilter& filter) {
  filter.refuse(EPERM, {SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_writev, SYS_unshare, SYS_setns,
                        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_bpf, SYS_userfaultfd,
                        SYS_io_uring_setup, SYS_keyctl, SYS_add_key, SYS_request_key});
  filter.refuse(EPERM, {SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
                        SYS_setpriority, SYS_setsid, SYS_setpgid});
  filter.refuse(EPERM, {SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal,
                        SYS_pidfd_getfd, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
                        SYS_reboot, SYS_swapon, SYS_swapoff, SYS_settimeofday, SYS_clock_settime,
                        SYS_adjtimex, SYS_sethostname, SYS_syslog, SYS_quotactl, SYS_acct});
#if defined(__x86_64__)
  filter.refuse(EPERM, {SYS_fork, SYS_vfork, SYS_iopl, SYS_ioperm, SYS_modify_ldt});
#endif
}

// Where names of hosts come from beyond what the C library has built in ("files" and "dns", as of 2.34):
// systemd, mDNS, a directory. Their libraries are loaded when a name is looked up, which is too late then.
void load_name_services(std::string_view settings) {
  while (!settings.empty()) {
    const std::string_view line = settings.substr(0, settings.find('\n'));
    settings.remove_prefix(std::min(line.size() + 1, settings.size()));
    constexpr std::string_view kHosts = "hosts:";
    if (!line.starts_with(kHosts)) continue;
    std::istringstream words{std::string(line.substr(kHosts.size()))};
    for (std::string word; words >> word;) {
      const bool is_name = std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';  // what is in brackets is no name
      });
      if (is_name && word != "files" && word != "dns")
        ::dlopen(("libnss_" + word + ".so.2").c_str(), RTLD_NOW);
    }
  }
}

}  // namespace

Result<void> enter_worker_sandbox(std::span<const NeededCall> needed) {
  load_name_services(read_file("/etc/nsswitch.conf").value_or(""));
  TRY(forbid_new_privileges());
  SyscallFilter filter;
  // What is used most is tried first, for kernels before 5.11, which do not remember the answers.
  allow_waiting_and_talking(filter);
  allow_memory_and_threads(filter);
  allow_files(filter);
  allow_less_rights(filter);
  allow_descriptor_flags(filter);
  allow_looking_around(filter);
  allow_own_affairs(filter, needed);
  allow_old_calls(filter);
  refuse_dangers(filter);
  return std::move(filter).install();
}

}  // namespace ddprof
