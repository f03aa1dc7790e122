#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unwind/instruction_x86_64.hpp"
#include "unwind/no_return_functions.hpp"
#include "wire/unwind_table.h"

namespace ddprof {

// Machine code at an address.
struct CodeBytes {
  std::uint64_t begin = 0;
  std::span<const std::byte> bytes;
  std::uint64_t version =
      0;  // of code that changes while it runs: no other bytes have the same; 0: of a file

  [[nodiscard]] std::span<const std::byte> at(std::uint64_t address) const {
    const std::uint64_t offset = address - begin;
    return offset < bytes.size() ? bytes.subspan(offset) : std::span<const std::byte>{};
  }
  // Up to `count` bytes that end just before the address.
  [[nodiscard]] std::span<const std::byte> before(std::uint64_t address, std::size_t count) const {
    const std::uint64_t offset = address - begin;
    if (offset > bytes.size()) return {};
    const std::uint64_t first = offset > count ? offset - count : 0;
    return bytes.subspan(first, offset - first);
  }
};

// What the instructions from an address on say of the frame at that address.
struct CodeRow {
  enum class Outcome : std::uint8_t {
    rule,
    never_returns,    // every path ends in a trap, a loop or a call that does not return
    unknown_jump,     // paths end in indirect jumps or in bytes that are not known
    too_long,         // no return within the budget
    contradiction,    // two returns, two answers
    not_expressible,  // it is known, but a rule cannot say it
  };
  Outcome outcome = Outcome::unknown_jump;
  ddprof_unwind_rule rule{};
  unsigned instructions = 0;  // that were read
};

// Where the value lies that a register has when a frame returns.
struct RegisterPlace {
  enum class Where : std::uint8_t {
    unknown,
    unchanged,
    at_sp,  // in the word at sp + offset
    at_fp,  // in the word at rbp + offset
  };
  Where where = Where::unknown;
  std::int32_t offset = 0;
};

// Unwind rules for x86-64 code that has no unwind information.
//
// Whatever a function has put on the stack, it removes before it returns, and it gives the caller's registers
// back. So the instructions that are still to come tell what is there now: they are followed to a `ret`, with
// registers and words on the stack as symbols ("what rsp was at the start, plus 24"). At the `ret` the stack
// pointer is the CFA - 8, and rbp holds the caller's.
//
// The answer depends on the code alone. Which functions never return is remembered for the piece of code at
// hand. One thread at a time.
class CodeWalk {
 public:
  static constexpr unsigned kMaxInstructions = 4000;

  // What find() reads from now on, and what is known of it, or null.
  void start(const CodeBytes& code, const NoReturnFunctions* no_return = nullptr);
  [[nodiscard]] CodeRow find(std::uint64_t pc);
  // Of a frame that has called: where its call does not return, other code follows.
  [[nodiscard]] CodeRow find_caller(std::uint64_t return_address);
  // What the last of them, if it has found a rule, knows of a register by its DWARF number.
  [[nodiscard]] RegisterPlace place_of(unsigned dwarf_number) const;

 private:
  // Addresses of one piece of code, forgotten all at once. Neighbours are neighbours here, so that a walk
  // finds them in the cache.
  class AddressSet {
   public:
    explicit AddressSet(unsigned bits) : mask_((std::size_t{1} << bits) - 1) {}

    void clear();
    // False if it was there, or if the set is half full.
    bool add(std::uint64_t address);
    [[nodiscard]] bool contains(std::uint64_t address) const {
      return entries_[find(address)].stamp == stamp_;
    }

   private:
    struct Entry {
      std::uint32_t address = 0;  // its low bits: a piece of code is smaller than 4 GiB
      std::uint32_t stamp = 0;
    };
    // Where it is, or the free place for it.
    [[nodiscard]] std::size_t find(std::uint64_t address) const;

    std::size_t mask_;
    std::vector<Entry> entries_;  // none before the first walk
    std::uint32_t stamp_ = 0;
    std::size_t size_ = 0;
  };

  // base + inner; or the word that was there when the walk began, + outer; or the word at that address.
  struct Value {
    std::uint8_t base = kUnknown;
    std::uint8_t loads = 0;
    std::int32_t inner = 0;
    std::int32_t outer = 0;

    friend bool operator==(const Value&, const Value&) = default;
    [[nodiscard]] bool is_known() const { return base != kUnknown; }
    [[nodiscard]] bool is_address() const { return is_known() && loads == 0; }
    [[nodiscard]] Value plus(std::int64_t offset) const;
  };
  static constexpr std::uint8_t kUnknown = 0xff;
  // Bases from here on: stack pointers that cannot be computed (aligned, alloca), one for each instruction.
  static constexpr std::uint8_t kFirstUnknownStack = x86_64::kRegisters;

  struct Slot {
    std::uint8_t base = kUnknown;
    std::int32_t offset = 0;
    Value value;
  };

  struct State {
    std::array<Value, x86_64::kRegisters> registers;
    static constexpr std::size_t kMaxSlots = 24;
    absl::InlinedVector<Slot, kMaxSlots> slots;  // copied at each branch: only what is used
    std::uint8_t compared_with_sp = x86_64::kNoRegister;
    bool has_popped = false;  // the last change of the stack pointer was the end of a frame

    State();
    [[nodiscard]] Value load(const Value& address) const;
    void store(const Value& address, const Value& value);
    void forget_below(const Value& stack_pointer);
  };

  struct Path {
    std::uint64_t pc = 0;
    State state;
  };

  struct Return {
    std::array<Value, x86_64::kRegisters> registers;
    bool is_certain = false;

    [[nodiscard]] const Value& sp() const { return registers[x86_64::kRsp]; }
    [[nodiscard]] const Value& fp() const { return registers[x86_64::kRbp]; }
  };

  static constexpr unsigned kMaxCallDepth = 3;

  [[nodiscard]] CodeRow find_in_order(std::uint64_t pc);
  void follow(std::uint64_t pc, State& state);
  void apply(const x86_64::Instruction& instruction, State& state);
  [[nodiscard]] static bool is_in_frame(const Value& value, const Value& sp);
  void note_return(const State& state, bool is_certain);
  void branch_to(std::uint64_t pc, const State& state);
  [[nodiscard]] bool may_return(std::uint64_t function, unsigned depth);
  [[nodiscard]] bool finds_return(std::uint64_t function, unsigned depth);
  [[nodiscard]] bool may_leave_by(const x86_64::Instruction& jump, std::uint64_t next, unsigned depth);
  [[nodiscard]] bool may_go_on_after(const x86_64::Instruction& call, std::uint64_t pc, unsigned depth);
  [[nodiscard]] bool is_listed(std::uint64_t address) const {
    return no_return_ != nullptr && no_return_->contains(address);
  }
  [[nodiscard]] bool starts_function(std::uint64_t pc) const;
  [[nodiscard]] const Return* agreed_return(bool& contradicts) const;
  [[nodiscard]] static std::optional<ddprof_unwind_rule> to_rule(const Return& found);
  [[nodiscard]] CodeRow conclude() const;

  CodeBytes code_;
  const NoReturnFunctions* no_return_ = nullptr;
  absl::flat_hash_map<std::uint64_t, bool> may_return_;  // by function and depth

  // Of the walk at hand.
  bool is_skipping_ = false;  // forward jumps come first
  std::vector<Path> pending_;
  std::vector<Return> returns_found_;
  AddressSet visited_{13};  // room for more than a walk can visit
  std::array<AddressSet, kMaxCallDepth> visited_in_callees_{AddressSet(9), AddressSet(9), AddressSet(9)};
  std::uint8_t next_unknown_stack_ = kFirstUnknownStack;
  unsigned instructions_ = 0;
  unsigned callee_instructions_ = 0;  // of called functions
  unsigned limit_ = kMaxInstructions;
  unsigned certain_returns_ = 0;
  bool has_unknown_end_ = false;
};

}  // namespace ddprof
