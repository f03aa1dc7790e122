#include "base/truncated_files.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace ddprof {

namespace {

std::atomic<std::uint64_t> pages_missing{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // used in a signal handler

std::uintptr_t page_mask = 0;

void read_zeros(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  // Of our mappings only those of files can have no page behind an address, and those are never written to.
  const auto page = reinterpret_cast<std::uintptr_t>(info->si_addr) & page_mask;
  const bool is_missing = info->si_code == BUS_ADRERR && page != 0;
  const auto size = static_cast<std::size_t>(~page_mask + 1);
  if (is_missing && ::mmap(reinterpret_cast<void*>(page), size, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    pages_missing.fetch_add(1, std::memory_order_relaxed);
  } else {
    std::signal(signal, SIG_DFL);  // it comes again, and ends us
  }
  errno = saved_errno;
}

}  // namespace

void survive_truncated_files() {
  page_mask = ~(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
  struct sigaction action {};
  action.sa_sigaction = read_zeros;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::uint64_t missing_file_pages() { return pages_missing.load(std::memory_order_relaxed); }

}  // namespace ddprof
