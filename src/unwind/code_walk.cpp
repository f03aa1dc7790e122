#include "unwind/code_walk.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace ddprof {

using x86_64::Instruction;
using x86_64::kNoRegister;
using x86_64::kRbp;
using x86_64::kRsp;
using Effect = x86_64::Instruction::Effect;
using Flow = x86_64::Instruction::Flow;

namespace {

constexpr std::int32_t kWordBytes = 8;
constexpr std::size_t kMaxPending = 256;
// Returns that agree: one of them may lie behind a call that does not return, and be another function's.
constexpr unsigned kEnoughReturns = 2;
// To look for the second one.
constexpr unsigned kMaxConfirming = 200;
constexpr std::size_t kMaxSavedFunctions = 4096;

// rbx, rbp, r12 to r15
constexpr std::array<std::uint8_t, 6> kCalleeSaved{3, 5, 12, 13, 14, 15};
constexpr std::uint16_t kCalleeSavedMask = 0xf028;

bool is_callee_saved(std::uint8_t reg) { return reg < 16 && (kCalleeSavedMask >> reg & 1) != 0; }

// By number of the encoding.
constexpr std::array<std::uint8_t, 16> kDwarfNumbers{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

}  // namespace

CodeWalk::Value CodeWalk::Value::plus(std::int64_t offset) const {
  if (offset == 0) return *this;
  if (!is_known() || loads == 2) return {};
  Value sum = *this;
  std::int32_t& term = loads == 1 ? sum.outer : sum.inner;
  const std::int64_t value = term + offset;
  if (!std::in_range<std::int32_t>(value)) return {};
  term = static_cast<std::int32_t>(value);
  return sum;
}

CodeWalk::State::State() {
  for (std::uint8_t reg = 0; Value & value : registers) value = {reg++};
}

CodeWalk::Value CodeWalk::State::load(const Value& address) const {
  if (address.loads == 1) return {address.base, 2, address.inner, address.outer};
  if (!address.is_address()) return {};
  for (const Slot& slot : slots) {
    if (slot.base != address.base) continue;
    const std::int64_t distance = std::int64_t{slot.offset} - address.inner;
    if (distance == 0) return slot.value;
    if (distance > -kWordBytes && distance < kWordBytes) return {};
  }
  if (address.base >= kFirstUnknownStack) return {};
  return {address.base, 1, address.inner, 0};
}

void CodeWalk::State::store(const Value& address, const Value& value) {
  if (!address.is_address()) return;
  // What was there is overwritten, in part or as a whole.
  const auto overlaps = [&](const Slot& slot) {
    const std::int64_t distance = std::int64_t{slot.offset} - address.inner;
    return slot.base == address.base && distance > -kWordBytes && distance < kWordBytes;
  };
  slots.erase(std::remove_if(slots.begin(), slots.end(), overlaps), slots.end());
  const auto is_wanted = [](const Slot& slot) {
    const Value& held = slot.value;
    return held.is_known() &&
           (is_callee_saved(held.base) || held.base == kRsp || held.base >= kFirstUnknownStack);
  };
  if (slots.size() == kMaxSlots) {
    const auto victim = std::find_if_not(slots.begin(), slots.end(), is_wanted);
    if (victim == slots.end()) return;
    slots.erase(victim);
  }
  slots.push_back({address.base, address.inner, value});
}

// A call may write there.
void CodeWalk::State::forget_below(const Value& stack_pointer) {
  if (!stack_pointer.is_address()) return;
  for (Slot& slot : slots) {
    if (slot.base == stack_pointer.base && slot.offset < stack_pointer.inner) slot.value = {};
  }
}

void CodeWalk::start(const CodeBytes& code, const NoReturnFunctions* no_return) {
  const bool is_same = code.begin == code_.begin && code.bytes.data() == code_.bytes.data() &&
                       code.bytes.size() == code_.bytes.size() && code.version == code_.version &&
                       no_return == no_return_;
  if (is_same) return;
  code_ = code;
  no_return_ = no_return;
  may_return_.clear();
}

void CodeWalk::AddressSet::clear() {
  if (++stamp_ == 0 || entries_.empty()) {
    entries_.assign(mask_ + 1, {});
    stamp_ = 1;
  }
  size_ = 0;
}

std::size_t CodeWalk::AddressSet::find(std::uint64_t address) const {
  const auto low = static_cast<std::uint32_t>(address);
  std::size_t at = low & mask_;
  while (entries_[at].stamp == stamp_ && entries_[at].address != low) at = (at + 1) & mask_;
  return at;
}

bool CodeWalk::AddressSet::add(std::uint64_t address) {
  Entry& entry = entries_[find(address)];
  if (entry.stamp == stamp_ || size_ > mask_ / 2) return false;
  entry = {static_cast<std::uint32_t>(address), stamp_};
  ++size_;
  return true;
}

void CodeWalk::branch_to(std::uint64_t pc, const State& state) {
  if (visited_.contains(pc)) return;
  if (pending_.size() < kMaxPending)
    pending_.push_back({pc, state});
  else
    has_unknown_end_ = true;
}

void CodeWalk::apply(const Instruction& instruction, State& state) {
  auto& registers = state.registers;
  const Value before = registers[kRsp];
  const auto value_of = [&](std::uint8_t reg) { return reg == kNoRegister ? Value{} : registers[reg]; };
  switch (instruction.effect) {
    case Effect::none:
      break;
    case Effect::add:
      registers[instruction.to] = registers[instruction.from].plus(instruction.value);
      break;
    case Effect::load:
      registers[instruction.to] = state.load(registers[instruction.from].plus(instruction.value));
      break;
    case Effect::store:
      state.store(registers[instruction.to].plus(instruction.value), value_of(instruction.from));
      break;
    case Effect::push: {
      const Value pushed = value_of(instruction.from);
      registers[kRsp] = registers[kRsp].plus(-kWordBytes);
      state.store(registers[kRsp], pushed);
      break;
    }
    case Effect::pop: {
      const Value popped = state.load(registers[kRsp]);
      registers[kRsp] = registers[kRsp].plus(kWordBytes);
      if (instruction.to != kNoRegister) registers[instruction.to] = popped;
      break;
    }
    case Effect::exchange:
      std::swap(registers[instruction.to], registers[instruction.from]);
      break;
    case Effect::compare:
      break;
    case Effect::leave:
      registers[kRsp] = registers[kRbp].plus(kWordBytes);
      registers[kRbp] = state.load(registers[kRbp]);
      break;
    case Effect::enter:
      registers[kRsp] = registers[kRsp].plus(-kWordBytes);
      state.store(registers[kRsp], registers[kRbp]);
      registers[kRbp] = registers[kRsp];
      registers[kRsp] = registers[kRsp].plus(-std::int64_t{instruction.value});
      break;
  }
  for (unsigned writes = instruction.writes; writes != 0; writes &= writes - 1)
    registers[static_cast<std::size_t>(std::countr_zero(writes))] = {};
  if (!registers[kRsp].is_known() && next_unknown_stack_ != kUnknown)
    registers[kRsp] = {next_unknown_stack_++};
  // Not `add`: it also releases the arguments of a call, before a jump through a table.
  if (registers[kRsp] != before) {
    const bool pops = instruction.effect == Effect::pop && instruction.to != kNoRegister;
    state.has_popped = pops || instruction.effect == Effect::leave;
  }
  state.compared_with_sp = kNoRegister;
  if (instruction.effect == Effect::compare) {
    if (instruction.to == kRsp) state.compared_with_sp = instruction.from;
    if (instruction.from == kRsp) state.compared_with_sp = instruction.to;
  }
}

// Whether a value was saved in the frame that ends at this stack pointer.
bool CodeWalk::is_in_frame(const Value& value, const Value& sp) {
  if (value.loads == 2)
    return sp.loads == 1 && value.base == sp.base && value.inner == sp.inner && value.outer < sp.outer;
  if (value.loads != 1 || value.outer != 0) return false;
  if (value.base == sp.base && sp.loads == 0) return value.inner < sp.inner;
  return value.base == kRsp || value.base == kRbp;
}

void CodeWalk::note_return(const State& state, bool is_certain) {
  const Value& sp = state.registers[kRsp];
  const bool is_impossible = sp.base == kRsp && sp.loads == 0 && (sp.inner < 0 || sp.inner % kWordBytes != 0);
  if (!sp.is_known() || sp.base >= kFirstUnknownStack || sp.loads == 2 || is_impossible) {
    has_unknown_end_ = true;
    return;
  }
  for (const std::uint8_t reg : kCalleeSaved) {
    const Value& value = state.registers[reg];
    if (value != Value{reg} && !is_in_frame(value, sp)) is_certain = false;
  }
  returns_found_.push_back({state.registers, is_certain});
  if (is_certain && ++certain_returns_ == 1)
    limit_ = std::min(kMaxInstructions, instructions_ + kMaxConfirming);
}

// Whether a function begins here, or behind padding: what was called before it does not return.
bool CodeWalk::starts_function(std::uint64_t pc) const {
  constexpr std::uint64_t kAlignment = 16;
  auto first = x86_64::decode(code_.at(pc));
  for (; first && first->is_nop; first = x86_64::decode(code_.at(pc))) pc += first->length;
  if (!first || pc % kAlignment != 0) return false;
  const auto code = code_.at(pc);
  const bool is_marked = code.size() > 3 && code[0] == std::byte{0xf3} && code[1] == std::byte{0x0f} &&
                         code[2] == std::byte{0x1e} && code[3] == std::byte{0xfa};  // endbr64
  const bool saves = first->effect == Effect::push && is_callee_saved(first->from);
  const bool reserves =
      first->effect == Effect::add && first->to == kRsp && first->from == kRsp && first->value < 0;
  return is_marked || saves || reserves;
}

void CodeWalk::follow(std::uint64_t pc, State& state) {
  while (visited_.add(pc)) {
    if (instructions_ >= limit_) return;
    const auto instruction = x86_64::decode(code_.at(pc));
    if (!instruction) {
      has_unknown_end_ = true;
      return;
    }
    ++instructions_;
    const std::uint64_t next = pc + instruction->length;
    const std::uint64_t target = pc + static_cast<std::uint64_t>(instruction->target.value_or(0));
    const std::uint8_t compared = state.compared_with_sp;
    switch (instruction->flow) {
      case Flow::next:
        apply(*instruction, state);
        break;
      case Flow::call:
        if (instruction->target && !may_return(target, 0)) return;
        if (starts_function(next)) {
          has_unknown_end_ = true;
          return;
        }
        state.forget_below(state.registers[kRsp]);
        // What else it may overwrite is read behind it only where it is known to survive: assembly that keeps
        // the old stack pointer in rcx over calls of its own functions, in libx264.
        state.registers[x86_64::kRax] = {};
        state.registers[x86_64::kRdx] = {};
        break;
      case Flow::branch: {
        apply(*instruction, state);
        if (is_skipping_ && target > next && compared == kNoRegister) {
          branch_to(next, state);
          pc = target;
          continue;
        }
        branch_to(target, state);
        // A loop that touches the stack page by page until the stack pointer has reached a limit.
        if (compared != kNoRegister && state.registers[compared].is_known())
          state.registers[kRsp] = state.registers[compared];
        break;
      }
      case Flow::jump:
        pc = target;
        continue;
      case Flow::indirect_jump:
        if (instruction->is_rip_relative) {
          if (!may_leave_by(*instruction, next, 0)) return;
          // The first stub of lazy binding has pushed two words, which the dynamic linker removes.
          const auto before = code_.at(pc - 6);
          if (before.size() > 2 && before[0] == std::byte{0xff} && before[1] == std::byte{0x35})
            state.registers[kRsp] = state.registers[kRsp].plus(2 * kWordBytes);
          note_return(state, true);
        } else if (!instruction->has_index && state.has_popped) {
          note_return(state, false);
        } else {
          has_unknown_end_ = true;
        }
        return;
      case Flow::ret:
        note_return(state, true);
        return;
      case Flow::stop:
        return;
    }
    pc = next;
  }
}

// Whether some path from here reaches a return, or leaves what is known: all functions do but those of which
// it is sure. Without the stack, so that it is cheap. An answer depends on the function and the depth alone.
bool CodeWalk::may_return(std::uint64_t function, unsigned depth) {
  if (is_listed(function)) return false;
  if (depth == kMaxCallDepth || callee_instructions_ >= kMaxInstructions) return true;
  const std::uint64_t key = function * kMaxCallDepth + depth;
  if (const auto known = may_return_.find(key); known != may_return_.end()) return known->second;
  const bool answer = finds_return(function, depth);
  if (callee_instructions_ < kMaxInstructions) may_return_.emplace(key, answer);
  return answer;
}

bool CodeWalk::finds_return(std::uint64_t function, unsigned depth) {
  constexpr unsigned kMaxVisits = 200;
  absl::InlinedVector<std::uint64_t, 64> pending{function};
  AddressSet& seen = visited_in_callees_[depth];
  seen.clear();
  unsigned visits = 0;
  while (!pending.empty()) {
    std::uint64_t pc = pending.back();
    pending.pop_back();
    while (seen.add(pc)) {
      const auto instruction = x86_64::decode(code_.at(pc));
      if (!instruction || ++visits > kMaxVisits || ++callee_instructions_ >= kMaxInstructions) return true;
      const std::uint64_t next = pc + instruction->length;
      const std::uint64_t target = pc + static_cast<std::uint64_t>(instruction->target.value_or(0));
      const Flow flow = instruction->flow;
      if (flow == Flow::ret) return true;
      if (flow == Flow::indirect_jump && may_leave_by(*instruction, next, depth)) return true;
      if (flow == Flow::stop || flow == Flow::indirect_jump) break;
      if (flow == Flow::call && !may_go_on_after(*instruction, pc, depth + 1)) break;
      if (flow == Flow::branch) pending.push_back(target);
      pc = flow == Flow::jump ? target : next;
    }
  }
  return false;
}

bool CodeWalk::may_leave_by(const Instruction& jump, std::uint64_t next, unsigned depth) {
  if (!jump.is_rip_relative || no_return_ == nullptr) return true;
  const std::uint64_t slot = next + static_cast<std::uint64_t>(std::int64_t{jump.value});
  if (is_listed(slot)) return false;
  const auto own = no_return_->function_of_slot(slot);
  return !own || may_return(*own, depth + 1);
}

bool CodeWalk::may_go_on_after(const Instruction& call, std::uint64_t pc, unsigned depth) {
  if (starts_function(pc + call.length)) return false;
  return !call.target || may_return(pc + static_cast<std::uint64_t>(*call.target), depth);
}

// The answer that the returns agree on; those that give all registers back count before the others.
const CodeWalk::Return* CodeWalk::agreed_return(bool& contradicts) const {
  const Return* agreed = nullptr;
  for (const bool is_certain : {true, false}) {
    for (const Return& found : returns_found_) {
      if (found.is_certain != is_certain) continue;
      contradicts =
          contradicts || (agreed != nullptr && (agreed->sp() != found.sp() || agreed->fp() != found.fp()));
      agreed = &found;
    }
    if (agreed != nullptr) return agreed;
  }
  return nullptr;
}

CodeRow CodeWalk::conclude() const {
  CodeRow row;
  row.instructions = instructions_ + callee_instructions_;
  bool contradicts = false;
  const Return* found = agreed_return(contradicts);
  if (contradicts) {
    row.outcome = CodeRow::Outcome::contradiction;
  } else if (found != nullptr) {
    row.outcome = CodeRow::Outcome::not_expressible;
    if (const auto rule = to_rule(*found)) {
      row.outcome = CodeRow::Outcome::rule;
      row.rule = *rule;
    }
  } else if (instructions_ >= kMaxInstructions) {
    row.outcome = CodeRow::Outcome::too_long;
  } else if (!has_unknown_end_) {
    row.outcome = CodeRow::Outcome::never_returns;
  }
  return row;
}

std::optional<ddprof_unwind_rule> CodeWalk::to_rule(const Return& found) {
  const Value& sp = found.sp();
  const Value& fp = found.fp();
  ddprof_unwind_rule rule{};
  const std::int64_t cfa = std::int64_t{sp.loads == 1 ? sp.outer : sp.inner} + kWordBytes;
  if (sp.loads == 1) {
    const bool is_stack = sp.base == kRsp || sp.base == kRbp;
    if (!is_stack || !std::in_range<std::int16_t>(sp.inner) || !std::in_range<std::int16_t>(cfa))
      return std::nullopt;
    rule.cfa = sp.base == kRsp ? DDPROF_CFA_DEREF_SP : DDPROF_CFA_DEREF_FP;
    rule.cfa_offset = static_cast<std::int32_t>(std::uint32_t{static_cast<std::uint16_t>(sp.inner)} |
                                                std::uint32_t{static_cast<std::uint16_t>(cfa)} << 16);
  } else {
    if (!std::in_range<std::int32_t>(cfa)) return std::nullopt;
    rule.cfa = static_cast<std::uint8_t>(DDPROF_CFA_REGISTER + kDwarfNumbers[sp.base]);
    if (sp.base == kRsp) rule.cfa = DDPROF_CFA_SP;
    if (sp.base == kRbp) rule.cfa = DDPROF_CFA_FP;
    rule.cfa_offset = static_cast<std::int32_t>(cfa);
  }

  std::int64_t offset = 0;
  const bool is_beside_cfa = sp.loads == 0 && fp.base == sp.base && (fp.base != kRsp || fp.inner >= 0);
  // Lost: assembly that does not give rbp back, whose callers then do not need it.
  if (fp == Value{kRbp} || !fp.is_known()) {
    rule.fp_ra = DDPROF_FP_SAME;
  } else if (!is_in_frame(fp, sp)) {
    return std::nullopt;
  } else if (fp.loads == 2 || is_beside_cfa) {
    rule.fp_ra = DDPROF_FP_AT_CFA;
    offset = (fp.loads == 2 ? fp.outer : fp.inner) - cfa;
  } else if (fp.base == kRbp) {
    rule.fp_ra = DDPROF_FP_AT_FP;
    offset = fp.inner;
  } else {
    return std::nullopt;
  }
  if (!std::in_range<std::int16_t>(offset)) return std::nullopt;
  rule.fp_offset = static_cast<std::int16_t>(offset);
  return rule;
}

RegisterPlace CodeWalk::place_of(unsigned dwarf_number) const {
  using Where = RegisterPlace::Where;
  const auto number = std::find(kDwarfNumbers.begin(), kDwarfNumbers.end(), dwarf_number);
  bool contradicts = false;
  const Return* found = agreed_return(contradicts);
  if (number == kDwarfNumbers.end() || found == nullptr || contradicts) return {};
  const auto reg = static_cast<std::uint8_t>(number - kDwarfNumbers.begin());
  const Value& value = found->registers[reg];
  const bool is_agreed = std::all_of(returns_found_.begin(), returns_found_.end(), [&](const Return& other) {
    return other.is_certain != found->is_certain || other.registers[reg] == value;
  });
  if (!is_agreed) return {};
  if (value == Value{reg}) return {Where::unchanged, 0};
  const bool is_word = value.loads == 1 && value.outer == 0;
  if (is_word && value.base == kRsp) return {Where::at_sp, value.inner};
  if (is_word && value.base == kRbp) return {Where::at_fp, value.inner};
  return {};
}

CodeRow CodeWalk::find_caller(std::uint64_t return_address) {
  constexpr std::uint64_t kCallBytes = 5;
  CodeRow row;
  if (starts_function(return_address)) return row;
  callee_instructions_ = 0;
  const std::uint64_t pc = return_address - kCallBytes;
  const auto call = x86_64::decode(code_.at(pc));
  const bool is_direct_call = call && call->flow == Flow::call && call->target && call->length == kCallBytes;
  if (!is_direct_call || may_return(pc + static_cast<std::uint64_t>(*call->target), 0))
    return find(return_address);
  row.outcome = CodeRow::Outcome::never_returns;
  row.instructions = callee_instructions_;
  return row;
}

// What comes next is followed first, and where that takes too long, what lies behind forward jumps: they lead
// over the bodies of loops, which are thousands of instructions in kernels for matrices.
CodeRow CodeWalk::find(std::uint64_t pc) {
  is_skipping_ = false;
  CodeRow row = find_in_order(pc);
  if (row.outcome != CodeRow::Outcome::too_long || pending_.empty()) return row;
  const unsigned before = row.instructions;
  is_skipping_ = true;
  row = find_in_order(pc);
  row.instructions += before;
  return row;
}

CodeRow CodeWalk::find_in_order(std::uint64_t pc) {
  pending_.clear();
  returns_found_.clear();
  visited_.clear();
  next_unknown_stack_ = kFirstUnknownStack;
  instructions_ = 0;
  limit_ = kMaxInstructions;
  callee_instructions_ = 0;
  certain_returns_ = 0;
  has_unknown_end_ = false;
  if (may_return_.size() > kMaxSavedFunctions) may_return_.clear();
  pending_.push_back({pc, State()});
  while (!pending_.empty() && instructions_ < limit_ && certain_returns_ < kEnoughReturns) {
    Path path = std::move(pending_.back());
    pending_.pop_back();
    follow(path.pc, path.state);
  }
  return conclude();
}

}  // namespace ddprof
