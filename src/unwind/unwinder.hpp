#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/frame.hpp"
#include "base/ids.hpp"
#include "base/registers.hpp"
#include "unwind/code_walk.hpp"
#include "unwind/module_map.hpp"
#include "unwind/outer_frames.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// The memory of a running target as it is now, which is later than the sample that is being unwound: what it
// says is evidence, not truth (see outer_frames.hpp). A higher layer reads with process_vm_readv; tests fake
// it.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;

  // Fills the front of `into` with what is readable from `address` on; returns how many bytes that was.
  virtual std::size_t read(Address address, std::span<std::byte> into) = 0;

  // The moment of the reads, on the clock of StackCopy::taken_at.
  [[nodiscard]] virtual Nanoseconds now() const = 0;

  // Code around an address of a module whose code no file holds, at its run-time addresses, as it was a
  // moment ago; empty: it is not known. Valid until the next stack. `is_doubted`: what was known has led
  // nowhere, and may have been overwritten.
  virtual CodeBytes read_code(const Module& /*module*/, Address /*address*/, bool /*is_doubted*/) {
    return {};
  }

 protected:
  MemoryReader() = default;
  MemoryReader(const MemoryReader&) = default;
  MemoryReader& operator=(const MemoryReader&) = default;
};

// The bytes of a thread's stack at the moment of a sample, from its stack pointer upward.
struct StackCopy {
  Address start;
  std::span<const std::byte> bytes;
  bool is_truncated = false;  // as large as was asked for: the stack goes on above it for sure
  Nanoseconds taken_at{};     // on the clock of MemoryReader::now(); only deep stacks need it
  bool is_32_bit = false;     // of i386 code: words have 4 bytes
};

struct Stack {
  std::vector<Frame> frames;  // leaf first; callers are already at return address - 1; no marker frames
  StopReason reason = StopReason::complete;
  FileId stop_file = FileId::none;   // where unwinding stopped, for reasons other than complete
  std::size_t frames_from_code = 0;  // how many of the frames were left by a rule made from instructions
  std::size_t outer_frames = 0;      // how many of the frames come from memory above the copy
  bool is_late = false;              // the goroutine that it was to go on with has moved on meanwhile
  std::size_t inner_frames = 0;      // those before a gap: there were more than are kept; 0: no gap

  void clear();  // keeps its memory
};

// Turns registers and a stack copy into frames by the rules of the modules' tables: the user-space executor.
//
// For each frame, in this order: the rule of its table; the signal trampoline by its bytes; the rule that its
// instructions give (code_walk.hpp), when it leads to behind a call; in the innermost frame what the next
// instructions are about to do (prologue, epilogue, import stub); the frame pointer, when what it points to
// passes for a frame. Never a guess: otherwise the stack ends, with the reason.
//
// Makes no system call, allocates nothing once its buffers have grown. One thread at a time.
class Unwinder {
 public:
  static constexpr std::size_t kMaxFrames = 4096;  // of more, both ends are kept

  // `pointer_authentication_bits`: the bits of an aarch64 return address that carry a signature
  // (NT_ARM_PAC_MASK).
  Unwinder(const RuleDictionary& rules, Architecture architecture,
           std::uint64_t pointer_authentication_bits = 0);

  // `outer` is the thread's own, null when deep stacks need not be completed; `live` is null when the
  // target's memory may not be read. Never fails: `out` says how far it came.
  void unwind(const Registers& registers, const StackCopy& copy, const ModuleMap& modules, OuterFrames* outer,
              MemoryReader* live, Stack& out);

 private:
  template <typename Word>
  friend class UnwindWalk;

  // What is known about a code address.
  struct Location {
    std::uint64_t address = 0;     // at run time
    std::uint32_t generation = 0;  // of the ModuleMap; no map has 0
    FileId file = FileId::none;
    std::uint64_t bias = 0;
    ddprof_unwind_rule rule{};
  };
  static constexpr unsigned kCacheBits = 11;  // 64 KiB

  const Location* find(std::uint64_t address, const ModuleMap& modules, bool is_32_bit) {
    const std::uint32_t generation = modules.generation();
    const std::uint64_t key = (address ^ (std::uint64_t{generation} << 40)) * 0x9e3779b97f4a7c15U;
    Location& slot = cache_[key >> (64 - kCacheBits)];
    if (slot.address == address && slot.generation == generation) return &slot;
    return look_up(address, modules, slot, is_32_bit);
  }
  // From the instructions, which are at run-time addresses; made once for an address of a file, or of a
  // version of generated code.
  const CodeRow& code_row(const Module& module, const CodeBytes& code, std::uint64_t pc,
                          bool is_return_address);
  struct CodeRegister {
    ddprof_unwind_rule rule{};  // of the frame; a gap: nothing is known
    RegisterPlace place;
  };
  const CodeRegister& code_register(const Module& module, const CodeBytes& code, std::uint64_t pc,
                                    bool is_return_address, unsigned number);
  CodeRow walk_code(const Module& module, const CodeBytes& code, std::uint64_t address,
                    bool is_return_address);
  const Location* look_up(std::uint64_t address, const ModuleMap& modules, Location& slot,
                          bool is_32_bit) const;

  const RuleDictionary& rules_;
  Architecture architecture_;
  std::uint64_t code_address_mask_;
  std::vector<Location> cache_;  // direct-mapped by address and generation
  CodeWalk code_walk_;
  using CodeKey = std::pair<std::uint64_t, std::uint64_t>;  // file or version, and address
  static CodeKey code_key(const Module& module, const CodeBytes& code, std::uint64_t address);
  absl::flat_hash_map<CodeKey, CodeRow> code_rows_;
  absl::flat_hash_map<CodeKey, CodeRegister> code_registers_;
  unsigned code_instructions_ = 0;  // that walks for the stack at hand have read
  std::vector<OuterFrame> steps_;   // of the walk at hand
  // Registers by which some caller finds its CFA, by their DWARF numbers. Few stacks have any: a walk that
  // needs one begins again, and follows it from the leaf on.
  struct Followed {
    std::uint32_t registers = 0;
    std::uint32_t known = 0;  // those whose values are known in the frame at hand
    std::array<std::uint64_t, Registers::kCount> values{};
  };
  Followed followed_;
  std::vector<std::byte> live_bytes_;  // window on live memory
};

}  // namespace ddprof
