#include "session/live_memory.hpp"

#include <sys/uio.h>

#include "base/clock.hpp"

namespace ddprof {

std::size_t LiveMemory::read(Address address, std::span<std::byte> into) {
  iovec local{.iov_base = into.data(), .iov_len = into.size()};
  iovec remote{.iov_base = reinterpret_cast<void*>(address.value),
               .iov_len = into.size()};  // NOLINT: their address
  ssize_t count = ::process_vm_readv(to_int(pid_), &local, 1, &remote, 1, 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

Nanoseconds LiveMemory::now() const { return monotonic_now(); }

}  // namespace ddprof
