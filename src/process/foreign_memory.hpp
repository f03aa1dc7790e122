#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace ddprof {

// Reads memory of other processes: with process_vm_readv (no stop, no signal), and files of /proc that hold
// parts of it.
//
// A process decides what is behind its addresses. A page of a file whose file system does not answer (a FUSE
// server that its user has stopped) holds up the reader for as long as that user likes, and no signal ends
// the wait. So every read is made by a helper thread. One that hangs is left behind; its process is not read
// again, and neither is anything of its user for a while that doubles with each hang. Which pages those are
// cannot be known before: mappings change between a look and the read. The hand-over costs some microseconds
// (docs/decisions/0017). For one thread at a time.
class ForeignMemory {
 public:
  struct Limits {
    // For a helper that waits for a page. Rings of samples hold more than that.
    std::chrono::milliseconds patience{50};
    std::chrono::milliseconds longest_patience{1000};  // for one that waits for a CPU
    // Of all processes of one user other than this one, which costs no one else anything.
    std::optional<std::uint32_t> own_user = ::geteuid();
    std::uint64_t bytes_per_second = std::uint64_t{32} << 20U;
    std::chrono::milliseconds waiting_per_second{100};
    std::size_t hung = 2;
    std::size_t hung_of_all = 16;  // threads that are left behind
  };
  using Read = std::function<std::size_t(Pid, Address, std::span<std::byte>)>;

  ForeignMemory();
  explicit ForeignMemory(Limits limits, Read read = read_with_system_call);
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  // Fills the front of `into` with what is readable from `from` on; returns how many bytes that was.
  std::size_t read(Pid pid, Address from, std::span<std::byte> into);
  // The same of a stack. Of a process of our own user it is read right here: that user has other ways to stop
  // us, and deep stacks are read several times for each sample.
  std::size_t read_stack(Pid pid, Address from, std::span<std::byte> into);
  // A file of /proc/PID that the process can write by writing its memory, or whose reader waits for a lock
  // that the process may hold while it waits for a page: "environ", "maps". `exhausted`: not now.
  Result<std::string> read_file(Pid pid, const std::string& name, std::size_t max_bytes);

  // The process has ended, or is another program now.
  void forget(Pid pid);
  // How many helpers hang right now.
  [[nodiscard]] std::size_t hung();

  // Needs the right to ptrace the process; where that is refused, reads give nothing.
  static std::size_t read_with_system_call(Pid pid, Address from, std::span<std::byte> into);

 private:
  struct Helper;
  struct User {
    Nanoseconds second{};  // that the next two are of
    std::uint64_t bytes = 0;
    Nanoseconds waited{};
    Nanoseconds blocked_until{};
    std::uint32_t hangs = 0;
  };
  struct Hung {
    std::shared_ptr<Helper> helper;
    std::uint32_t user = 0;
  };
  struct Answer {
    std::vector<std::byte> buffer;  // only ever grows: what is read over need not be zeroed before
    std::size_t size = 0;
  };
  using Work = std::function<void(Answer& into)>;

  // Nothing: it may not be read, or did not answer in time. The bytes are valid until the next call.
  std::optional<std::span<const std::byte>> ask(Pid pid, std::size_t bytes, Work work);
  std::optional<std::uint32_t> user_of(Pid pid);
  bool may_read(std::uint32_t number, User& user, std::size_t bytes, Nanoseconds now);
  [[nodiscard]] std::size_t hung_of(std::uint32_t user) const;
  void forget_returned();
  bool wait_for_answer(Helper& helper) const;

  Limits limits_;
  Read read_;
  std::shared_ptr<Helper> helper_;  // none: started by the next read
  std::vector<Hung> hung_;
  absl::flat_hash_map<std::int32_t, std::uint32_t> users_of_;  // by pid
  absl::flat_hash_map<std::uint32_t, User> users_;
  absl::flat_hash_set<std::int32_t> given_up_;  // pids
};

}  // namespace ddprof
