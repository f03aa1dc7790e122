#include "runtime/worker_sandbox.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "base/read_file.hpp"
#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
#include "runtime/in_child_fixture.hpp"

namespace ddprof {
namespace {

bool stays_outside() {
  return in_child([] { return enter_worker_sandbox() ? status_lines("Seccomp:") : ""; }) != "Seccomp:\t2\n";
}

// "done", or the name of the errno.
std::string in_sandbox(const std::function<long()>& call, std::span<const NeededCall> needed = {}) {
  return in_child([&] {
    if (!enter_worker_sandbox(needed)) return std::string("outside");
    errno = 0;
    return call() >= 0 ? std::string("done") : std::string(::strerrorname_np(errno));
  });
}

class WorkerSandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (stays_outside()) GTEST_SKIP() << "a kernel without seccomp";
  }
};

TEST_F(WorkerSandbox, ForbidsNewPrivileges) {
  EXPECT_EQ(in_child([] { return enter_worker_sandbox() ? status_lines("NoNewPrivs") : ""; }),
            "NoNewPrivs:\t1\n");
}

TEST_F(WorkerSandbox, RefusesToRunPrograms) {
  EXPECT_EQ(in_sandbox([] { return ::execl("/bin/true", "true", nullptr); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_execveat, AT_FDCWD, "/bin/true", nullptr, nullptr, 0); }),
            "EPERM");
}

TEST_F(WorkerSandbox, MakesThreadsAndNoProcesses) {
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::fork()); }), "EPERM");
  EXPECT_EQ(
      in_sandbox([] { return ::syscall(SYS_clone, CLONE_VM | SIGCHLD, nullptr, nullptr, nullptr, nullptr); }),
      "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_clone3, nullptr, 0); }), "ENOSYS");
  EXPECT_EQ(in_sandbox([] {
              long ran = -1;
              std::thread([&] { ran = 0; }).join();
              return ran;
            }),
            "done");
}

TEST_F(WorkerSandbox, HoldsInThreadsOfBeforeAndAfter) {
  EXPECT_EQ(
      in_child([] {
        std::atomic<bool> is_entered = false;
        std::string answer;
        std::thread before([&] {
          is_entered.wait(false);
          answer = ::syscall(SYS_setsid) < 0 ? ::strerrorname_np(errno) : "done";
        });
        bool entered = enter_worker_sandbox().ok();
        is_entered = true;
        is_entered.notify_all();
        before.join();
        std::thread([&] { answer += ::syscall(SYS_setsid) < 0 ? ::strerrorname_np(errno) : "done"; }).join();
        return entered ? answer : "outside";
      }),
      "EPERMEPERM");
}

TEST_F(WorkerSandbox, SignalsOnlyItself) {
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::kill(::getpid(), 0)); }), "done");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::kill(::getppid(), 0)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::kill(-1, 0)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0); }), "done");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0); }), "EPERM");
}

TEST_F(WorkerSandbox, LetsNoDescriptorSignalOthersForIt) {
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::fcntl(0, F_SETOWN, ::getppid())); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::fcntl(0, F_SETSIG, SIGKILL)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::fcntl(0, F_DUPFD_CLOEXEC, 10)); }), "done");
}

TEST_F(WorkerSandbox, MovesOnlyItself) {
  cpu_set_t cpus;
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  EXPECT_EQ(in_sandbox([&] { return static_cast<long>(::sched_setaffinity(0, sizeof cpus, &cpus)); }),
            "done");
  EXPECT_EQ(
      in_sandbox([&] { return static_cast<long>(::sched_setaffinity(::getppid(), sizeof cpus, &cpus)); }),
      "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::setpriority(PRIO_PROCESS, 0, 19)); }), "EPERM");
}

TEST_F(WorkerSandbox, StillDiesOfItsOwnSignals) {
  EXPECT_EQ(in_child([]() -> std::string {
              if (!enter_worker_sandbox()) return "outside";
              ::raise(SIGTERM);
              return "alive";
            }),
            "ended with status 15");
}

TEST_F(WorkerSandbox, ReadsMemoryOfOthersAndDoesNotWriteIt) {
  int secret = 42;
  int copy = 0;
  iovec here{&copy, sizeof copy};
  iovec there{&secret, sizeof secret};
  EXPECT_EQ(
      in_sandbox([&] { return static_cast<long>(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0)); }),
      "done");
  EXPECT_EQ(
      in_sandbox([&] { return static_cast<long>(::process_vm_writev(::getpid(), &here, 1, &there, 1, 0)); }),
      "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }), "EPERM");
}

TEST_F(WorkerSandbox, KeepsItsIdentityAndItsView) {
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::setuid(::getuid())); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::setresgid(0, 0, 0)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::chroot("/")); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::unshare(CLONE_NEWNS)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_mount, nullptr, "/", nullptr, 0, nullptr); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::prctl(PR_SET_SECCOMP, 0, 0, 0, 0)); }), "EPERM");
}

TEST_F(WorkerSandbox, AsksTheKernelForNothingThatRuns) {
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_bpf, 0, nullptr, 0); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_finit_module, -1, "", 0); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_userfaultfd, 0); }), "EPERM");
}

TEST_F(WorkerSandbox, MakesNoCode) {
  auto map = [](int protection) {
    void* memory = ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? -1L : 0L;
  };
  EXPECT_EQ(in_sandbox([&] { return map(PROT_READ | PROT_WRITE); }), "done");
  EXPECT_EQ(in_sandbox([&] { return map(PROT_READ | PROT_EXEC); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::memfd_create("code", 0)); }), "ENOSYS");
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(in_sandbox([&] { return static_cast<long>(::mprotect(page, 4096, PROT_READ | PROT_EXEC)); }),
            "EPERM");
  ::munmap(page, 4096);
}

// A file can be written first, or be another user's.
TEST_F(WorkerSandbox, LoadsNoCode) {
  ScratchFolder folder;
  folder.write("code", std::string(4096, '\xc3'));
  auto map = [&](int protection, int flags) {
    const UniqueFd fd(::open(folder.path("code").c_str(), O_RDONLY | O_CLOEXEC));
    return ::mmap(nullptr, 4096, protection, flags, fd.get(), 0) == MAP_FAILED ? -1L : 0L;
  };
  EXPECT_EQ(in_sandbox([&] { return map(PROT_READ, MAP_PRIVATE); }), "done");
  EXPECT_EQ(in_sandbox([&] { return map(PROT_READ | PROT_EXEC, MAP_PRIVATE); }), "EPERM");
  EXPECT_EQ(in_sandbox([&] { return map(PROT_READ | PROT_EXEC, MAP_SHARED); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_pkey_mprotect, nullptr, 0, PROT_EXEC, -1); }), "ENOSYS");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_shmat, 0, nullptr, SHM_EXEC); }), "ENOSYS");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_personality, 0x0400000); }), "ENOSYS");  // READ_IMPLIES_EXEC
}

TEST_F(WorkerSandbox, OpensNothingRawAndNoNetlink) {
  auto socket = [](int family, int type, int protocol) {
    return in_sandbox([=] { return static_cast<long>(::socket(family, type | SOCK_CLOEXEC, protocol)); });
  };
  for (int protocol = 0; protocol < 23; ++protocol)
    EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW, protocol), "EPERM") << protocol;
  EXPECT_EQ(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "EPERM");
  EXPECT_EQ(socket(AF_INET6, SOCK_RAW, IPPROTO_RAW), "EPERM");
  EXPECT_EQ(socket(AF_UNIX, SOCK_SEQPACKET, 0), "EPERM");
  EXPECT_EQ(socket(AF_VSOCK, SOCK_STREAM, 0), "EPERM");
  EXPECT_EQ(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "done");
  EXPECT_EQ(socket(AF_UNIX, SOCK_DGRAM, 0), "done");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::bind(0, nullptr, 0)); }), "ENOSYS");
}

// Files are opened with the rights of the process that names them, by a thread of its own.
TEST_F(WorkerSandbox, TakesOnTheRightsOfAnotherUserForFilesAlone) {
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_setfsuid, ::geteuid()); }), "done");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_setfsgid, ::getegid()); }), "done");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_setreuid, -1, -1); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return ::syscall(SYS_setgroups, -1, nullptr); }),
            ::geteuid() == 0 ? "EINVAL" : "EPERM");
}

TEST_F(WorkerSandbox, TalksToAgentsButDoesNotListen) {
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::socket(AF_UNIX, SOCK_STREAM, 0)); }), "done");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::socket(AF_INET, SOCK_STREAM, 0)); }), "done");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::socket(AF_PACKET, SOCK_RAW, 0)); }), "EPERM");
  EXPECT_EQ(in_sandbox([] { return static_cast<long>(::listen(0, 1)); }), "ENOSYS");
  EXPECT_EQ(in_sandbox([] {
              addrinfo* addresses = nullptr;
              return ::getaddrinfo("localhost", "80", nullptr, &addresses) == 0 ? 0L : -1L;
            }),
            "done");
}

TEST_F(WorkerSandbox, DoesNotTypeIntoTerminals) {
  char key = 'x';
  EXPECT_EQ(in_sandbox([&] { return static_cast<long>(::ioctl(0, TIOCSTI, &key)); }), "EPERM");
}

TEST_F(WorkerSandbox, LetsThroughWhatTheCollectorNeeds) {
  const auto ask = [] { return static_cast<long>(::ioctl(-1, _IO('$', 1), 0)); };
  const auto call = [] { return ::syscall(SYS_personality, 0xffffffff); };  // which it is now
  EXPECT_EQ(in_sandbox(ask), "EPERM");
  EXPECT_EQ(in_sandbox(call), "ENOSYS");
  const std::vector<NeededCall> needed = {{SYS_ioctl, '$'}, {SYS_personality}};
  EXPECT_EQ(in_sandbox(ask, needed), "EBADF");
  EXPECT_EQ(in_sandbox(call, needed), "done");
}

TEST_F(WorkerSandbox, ReadsAndWritesFiles) {
  ScratchFolder folder;
  EXPECT_EQ(in_sandbox([&] {
              folder.write("new/profile.tmp", "content");
              std::filesystem::rename(folder.path("new/profile.tmp"), folder.path("profile"));
              return read_file(folder.path("profile")).value_or("") == "content" ? 0L : -1L;
            }),
            "done");
}

TEST_F(WorkerSandbox, RefusesTheCallsOfOtherArchitectures) {
#if defined(__x86_64__)
  constexpr long kX32Bit = 0x40000000;
  EXPECT_EQ(in_sandbox([] { return ::syscall(kX32Bit + SYS_getpid); }), "ENOSYS");
  long answer = 0;
  EXPECT_EQ(in_child([&]() -> std::string {
              if (!enter_worker_sandbox()) return "outside";
              asm volatile("int $0x80" : "=a"(answer) : "a"(20L) : "memory");  // getpid of i386
              return answer == -ENOSYS ? "refused" : "answered";
            }),
            "refused");
#endif
}

}  // namespace
}  // namespace ddprof
