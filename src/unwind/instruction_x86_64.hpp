#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ddprof {

// An x86-64 instruction, reduced to what a walk over code follows: its length, where control goes, and what
// becomes of the general registers and of words on the stack. Registers have the numbers of the encoding.
namespace x86_64 {

constexpr std::uint8_t kRax = 0;
constexpr std::uint8_t kRdx = 2;
constexpr std::uint8_t kRbx = 3;
constexpr std::uint8_t kRsp = 4;
constexpr std::uint8_t kRbp = 5;
constexpr std::uint8_t kRegisters = 16;
constexpr std::uint8_t kNoRegister = 0xff;  // an operand that is not followed: memory elsewhere, a constant
constexpr std::size_t kMaxInstructionBytes = 15;

struct Instruction {
  enum class Flow : std::uint8_t {
    next,
    call,           // `target` is set if it is direct
    jump,           // always
    branch,         // or not
    indirect_jump,  // also far returns
    ret,
    stop,  // ud2, hlt, int3: what comes next is not executed
  };
  enum class Effect : std::uint8_t {
    none,
    add,       // to = from + value
    load,      // to = 8 bytes at from + value
    store,     // 8 bytes at to + value = from
    push,      // from
    pop,       // to
    exchange,  // to and from
    compare,   // to with from
    leave,
    enter,  // with `value` bytes
  };

  std::uint8_t length = 0;
  Flow flow = Flow::next;
  Effect effect = Effect::none;
  std::uint8_t to = kNoRegister;
  std::uint8_t from = kNoRegister;
  bool is_nop = false;                   // in any of its lengths
  bool is_rip_relative = false;          // of the operand in memory
  bool has_index = false;                // of the operand in memory
  std::uint16_t writes = 0;              // registers that get a value which is not followed: a bit each
  std::int32_t value = 0;                // a displacement or a constant
  std::optional<std::int64_t> target{};  // of a direct jump or call, from the start of the instruction
};

// The instruction that `code` starts with; nothing if it is cut off or is none.
[[nodiscard]] std::optional<Instruction> decode(std::span<const std::byte> code);

}  // namespace x86_64

}  // namespace ddprof
