#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "process/foreign_memory.hpp"
#include "unwind/code_walk.hpp"
#include "unwind/module_map.hpp"

namespace ddprof {

// Code that processes have generated, in windows around the addresses that stacks lead to, read from their
// memory.
//
// Nothing tells when such code changes. So for each stack the bytes around the address itself are read again
// and compared, and all of a window when it is used a second later, or 16 ms later if what it says has led
// nowhere. Each time that it is the same these times double, up to 32 s and half a second. Bytes that are the
// same keep their version, and with it the rules that were made from them. Of a stack that is older than a
// change at its very address it is not known which code was there.
class CodeMemory {
 public:
  // A kernel of oneDNN for products of matrices jumps further than 100 KiB on its way to its return.
  static constexpr std::size_t kWindowBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kMostWindows = 64;  // of all processes, 16 MiB
  // Of one process: 8 MiB a second.
  static constexpr std::uint32_t kMostReadsPerSecond = 32;
  static constexpr std::uint32_t kMostChecksPerSecond = 1000;

  explicit CodeMemory(ForeignMemory& memory) : memory_(memory) {}

  // What is known of the code around an address of a module; empty: it cannot be read, or not now. Valid
  // until begin_stack().
  CodeBytes find(Pid pid, const Module& module, Address address, bool is_doubted, Nanoseconds now);
  // Of a sample that was taken then.
  void begin_stack(Nanoseconds taken_at);
  // Drops what was not used since the last call.
  void forget_unused();
  void forget_all();

  // How often a window was not read because its process had used up its share.
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }
  [[nodiscard]] std::size_t size() const { return windows_.size(); }

 private:
  using Key = std::pair<std::int32_t, std::uint64_t>;  // process and block of addresses
  struct Window {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // of what was asked for
    std::vector<std::byte> bytes{};
    std::vector<std::byte> previous{};  // what was there before it changed
    std::uint64_t version = 0;
    Nanoseconds read_at{};
    Nanoseconds changed_at{};
    Nanoseconds trusted_for{};
    std::uint64_t used_at = 0;  // counts stacks
    bool was_used = true;
  };
  struct Share {
    Nanoseconds second{};
    std::uint32_t reads = 0;
    std::uint32_t checks = 0;
  };

  void read(Pid pid, Window& window, bool is_same_place, Nanoseconds now);
  Share& share(Pid pid, Nanoseconds now);
  bool may_read(Pid pid, Nanoseconds now);
  bool is_unchanged(Pid pid, const Window& window, std::uint64_t address, Nanoseconds now);

  ForeignMemory& memory_;
  absl::flat_hash_map<Key, std::unique_ptr<Window>> windows_;
  absl::flat_hash_map<std::int32_t, Share> shares_;  // by pid
  std::vector<std::vector<std::byte>> replaced_;     // that the stack at hand may still look at
  std::vector<std::uint64_t> checked_;               // addresses, for the stack at hand
  Nanoseconds taken_at_{};                           // its sample
  std::uint64_t last_version_ = 0;
  std::uint64_t stacks_ = 0;
  std::uint64_t refusals_ = 0;
};

}  // namespace ddprof
