#include "unwind/instruction_x86_64.hpp"

#include <algorithm>
#include <array>
#include <cstring>

// The encoding: Intel SDM volume 2, chapter 2 and appendix A; XOP: AMD APM volume 6.

namespace ddprof::x86_64 {

namespace {

using Effect = Instruction::Effect;
using Flow = Instruction::Flow;

// What follows an opcode.
enum Form : std::uint8_t {
  kPlain = 0,
  kModrm = 1,
  kImm8 = 2,
  kImm16 = 4,
  kImm32 = 8,  // two bytes with the operand size prefix
  kRel32 = 16,
  kInvalid = 32,
};

using Forms = std::array<std::uint8_t, 256>;

constexpr void set(Forms& forms, unsigned first, unsigned last, unsigned form) {
  for (unsigned opcode = first; opcode <= last; ++opcode) forms[opcode] = static_cast<std::uint8_t>(form);
}

constexpr Forms one_byte_forms() {
  Forms forms{};
  for (unsigned opcode = 0; opcode < 0x40; opcode += 8) {  // add or adc sbb and sub xor cmp
    set(forms, opcode, opcode + 3, kModrm);
    set(forms, opcode + 4, opcode + 4, kImm8);
    set(forms, opcode + 5, opcode + 5, kImm32);
    set(forms, opcode + 6, opcode + 7, kInvalid);
  }
  set(forms, 0x60, 0x62, kInvalid);
  set(forms, 0x63, 0x63, kModrm);
  set(forms, 0x68, 0x68, kImm32);
  set(forms, 0x69, 0x69, kModrm | kImm32);
  set(forms, 0x6a, 0x6a, kImm8);
  set(forms, 0x6b, 0x6b, kModrm | kImm8);
  set(forms, 0x70, 0x7f, kImm8);
  set(forms, 0x80, 0x80, kModrm | kImm8);
  set(forms, 0x81, 0x81, kModrm | kImm32);
  set(forms, 0x82, 0x82, kInvalid);
  set(forms, 0x83, 0x83, kModrm | kImm8);
  set(forms, 0x84, 0x8f, kModrm);
  set(forms, 0x9a, 0x9a, kInvalid);
  set(forms, 0xa8, 0xa8, kImm8);
  set(forms, 0xa9, 0xa9, kImm32);
  set(forms, 0xb0, 0xb7, kImm8);
  set(forms, 0xb8, 0xbf, kImm32);  // eight bytes with REX.W
  set(forms, 0xc0, 0xc1, kModrm | kImm8);
  set(forms, 0xc2, 0xc2, kImm16);
  set(forms, 0xc4, 0xc5, kInvalid);
  set(forms, 0xc6, 0xc6, kModrm | kImm8);
  set(forms, 0xc7, 0xc7, kModrm | kImm32);
  set(forms, 0xc8, 0xc8, kImm16 | kImm8);
  set(forms, 0xca, 0xca, kImm16);
  set(forms, 0xcd, 0xcd, kImm8);
  set(forms, 0xce, 0xce, kInvalid);
  set(forms, 0xd0, 0xd3, kModrm);
  set(forms, 0xd4, 0xd6, kInvalid);
  set(forms, 0xd8, 0xdf, kModrm);
  set(forms, 0xe0, 0xe7, kImm8);
  set(forms, 0xe8, 0xe9, kRel32);
  set(forms, 0xea, 0xea, kInvalid);
  set(forms, 0xeb, 0xeb, kImm8);
  set(forms, 0xf6, 0xf7, kModrm);  // test has a constant, the others of the group have none
  set(forms, 0xfe, 0xff, kModrm);
  return forms;
}

constexpr Forms two_byte_forms() {
  Forms forms{};
  set(forms, 0x00, 0xff, kModrm);
  set(forms, 0x04, 0x0c, kPlain);
  for (const unsigned opcode : {0x04U, 0x0aU, 0x0cU, 0x36U}) set(forms, opcode, opcode, kInvalid);
  set(forms, 0x0e, 0x0e, kPlain);
  set(forms, 0x0f, 0x0f, kModrm | kImm8);
  set(forms, 0x24, 0x27, kInvalid);
  set(forms, 0x30, 0x37, kPlain);
  set(forms, 0x38, 0x3f, kInvalid);
  set(forms, 0x70, 0x73, kModrm | kImm8);
  set(forms, 0x77, 0x77, kPlain);
  set(forms, 0x7a, 0x7b, kInvalid);
  set(forms, 0x80, 0x8f, kRel32);
  set(forms, 0xa0, 0xa2, kPlain);
  set(forms, 0xa4, 0xa4, kModrm | kImm8);
  set(forms, 0xa8, 0xaa, kPlain);
  set(forms, 0xac, 0xac, kModrm | kImm8);
  set(forms, 0xba, 0xba, kModrm | kImm8);
  set(forms, 0xc2, 0xc2, kModrm | kImm8);
  set(forms, 0xc4, 0xc6, kModrm | kImm8);
  set(forms, 0xc8, 0xcf, kPlain);
  return forms;
}

constexpr Forms kOneByte = one_byte_forms();
constexpr Forms kTwoByte = two_byte_forms();

enum class Encoding : std::uint8_t { legacy, vex, evex, xop };

// Numbers of the opcode maps in VEX, EVEX and XOP.
constexpr unsigned kMap0F = 1;
constexpr unsigned kMap0F38 = 2;
constexpr unsigned kMap0F3A = 3;

// The prefix that is part of an opcode.
enum Mandatory : std::uint8_t { kNone = 0, k66 = 1, kF3 = 2, kF2 = 3 };

enum class Prefix : std::uint8_t { none, rex, operand_size, address_size, repeat, segment, lock };

constexpr std::array<Prefix, 256> prefixes() {
  std::array<Prefix, 256> table{};
  for (unsigned byte = 0x40; byte < 0x50; ++byte) table[byte] = Prefix::rex;
  for (const unsigned byte : {0x26U, 0x2eU, 0x36U, 0x3eU, 0x64U, 0x65U}) table[byte] = Prefix::segment;
  table[0x66] = Prefix::operand_size;
  table[0x67] = Prefix::address_size;
  table[0xf0] = Prefix::lock;
  table[0xf2] = table[0xf3] = Prefix::repeat;
  return table;
}

constexpr std::array<Prefix, 256> kPrefixes = prefixes();

constexpr std::uint16_t bit(unsigned reg) { return static_cast<std::uint16_t>(1U << reg); }

constexpr unsigned kRcx = 1;
constexpr unsigned kRsi = 6;
constexpr unsigned kRdi = 7;
constexpr unsigned kR11 = 11;

class Decoder {
 public:
  // Writes its answer in place: to copy what was just written by parts takes longer than anything else here.
  Decoder(std::span<const std::byte> code, Instruction& found)
      : begin_(code.data()),
        at_(code.data()),
        end_(at_ + std::min(code.size(), kMaxInstructionBytes)),
        found_(found) {}

  bool run() {
    if (!read_prefixes() || !read_opcode() || !read_operands()) return false;
    found_.length = static_cast<std::uint8_t>(at_ - begin_);
    if (encoding_ != Encoding::legacy) {
      find_vector_writes();
    } else if (map_ == 0) {
      find_one_byte_effect();
    } else if (map_ == kMap0F) {
      find_two_byte_effect();
    } else {
      find_three_byte_effect();
    }
    return true;
  }

 private:
  [[nodiscard]] bool has(std::ptrdiff_t count) const { return end_ - at_ >= count; }
  [[nodiscard]] unsigned peek(std::ptrdiff_t offset = 0) const {
    return std::to_integer<unsigned>(at_[offset]);
  }

  template <typename T>
  bool read_signed(std::int64_t& value) {
    T raw = 0;
    if (!has(sizeof raw)) return false;
    std::memcpy(&raw, at_, sizeof raw);
    at_ += sizeof raw;
    value = raw;
    return true;
  }

  bool read_prefixes() {
    for (; has(1); ++at_) {
      const unsigned byte = peek();
      const Prefix prefix = kPrefixes[byte];
      if (prefix == Prefix::none) return true;
      rex_ = prefix == Prefix::rex ? byte : 0;  // counts only right before the opcode
      if (prefix != Prefix::rex) note_prefix(prefix, byte);
    }
    return false;
  }

  void note_prefix(Prefix prefix, unsigned byte) {
    switch (prefix) {
      case Prefix::operand_size:
        has_66_ = true;
        break;
      case Prefix::address_size:
        has_67_ = true;
        break;
      case Prefix::repeat:
        repeat_ = byte == 0xf2 ? kF2 : kF3;
        break;
      case Prefix::segment:
        has_segment_ = byte >= 0x64;  // the others do nothing in 64-bit code
        break;
      default:
        break;
    }
  }

  [[nodiscard]] bool is_wide() const { return (rex_ & 8) != 0; }
  [[nodiscard]] Mandatory mandatory() const { return repeat_ != kNone ? repeat_ : has_66_ ? k66 : kNone; }

  bool read_opcode() {
    const unsigned first = peek();
    if (first == 0x62) return read_evex();
    if (first == 0xc4 || first == 0xc5) return read_vex();
    if (first == 0x8f && has(2) && (peek(1) & 0x1f) >= 8) return read_xop();
    ++at_;
    if (first != 0x0f) {
      opcode_ = first;
      form_ = kOneByte[opcode_];
      return (form_ & kInvalid) == 0;
    }
    if (!has(1)) return false;
    opcode_ = peek();
    ++at_;
    map_ = kMap0F;
    form_ = kTwoByte[opcode_];
    if (opcode_ == 0x38 || opcode_ == 0x3a) {
      map_ = opcode_ == 0x38 ? kMap0F38 : kMap0F3A;
      if (!has(1)) return false;
      opcode_ = peek();
      ++at_;
      form_ = map_ == kMap0F38 ? kModrm : kModrm | kImm8;
    }
    if (map_ == kMap0F && opcode_ == 0x78 && mandatory() != kNone) form_ = kModrm | kImm16;  // extrq, insertq
    return (form_ & kInvalid) == 0;
  }

  // Inverted bits of the prefix, in the places that REX has them.
  static unsigned inverted_rex(unsigned byte, bool wide) { return ((~byte >> 5) & 7) | (wide ? 8U : 0U); }

  bool read_vex() {
    const bool is_short = peek() == 0xc5;
    if (!has(is_short ? 3 : 4)) return false;
    const unsigned last = peek(is_short ? 1 : 2);
    encoding_ = Encoding::vex;
    map_ = is_short ? kMap0F : peek(1) & 0x1f;
    rex_ = is_short ? inverted_rex(peek(1), false) & 4 : inverted_rex(peek(1), (last & 0x80) != 0);
    set_vector_prefix(last);
    at_ += is_short ? 2 : 3;
    return set_vector_form(kMap0F3A);
  }

  bool read_xop() {
    if (!has(4)) return false;
    encoding_ = Encoding::xop;
    map_ = peek(1) & 0x1f;
    rex_ = inverted_rex(peek(1), (peek(2) & 0x80) != 0);
    set_vector_prefix(peek(2));
    opcode_ = peek(3);
    at_ += 4;
    constexpr unsigned kMaps = 11;
    form_ = map_ == 8 ? kModrm | kImm8 : map_ == 9 ? kModrm : kModrm | kImm32;
    return map_ < kMaps;
  }

  bool read_evex() {
    if (!has(6)) return false;
    encoding_ = Encoding::evex;
    map_ = peek(1) & 7;
    rex_ = inverted_rex(peek(1), (peek(2) & 0x80) != 0);
    if ((peek(2) & 4) == 0) return false;
    set_vector_prefix(peek(2));
    at_ += 4;
    constexpr unsigned kHalfPrecision = 5;  // maps 5 and 6
    return map_ != 4 && set_vector_form(kHalfPrecision + 1);
  }

  void set_vector_prefix(unsigned byte) {
    vector_register_ = (~byte >> 3) & 15;
    repeat_ = static_cast<Mandatory>(byte & 3);
    has_66_ = false;
  }

  bool set_vector_form(unsigned last_map) {
    if (map_ == 0 || map_ > last_map) return false;
    opcode_ = peek();
    ++at_;
    form_ = kModrm;
    if (map_ == kMap0F && opcode_ == 0x77) form_ = kPlain;
    const bool has_constant = map_ == kMap0F && (kTwoByte[opcode_] & kImm8) != 0;
    if (map_ == kMap0F3A || has_constant) form_ |= kImm8;
    return true;
  }

  bool read_operands() {
    if ((form_ & kModrm) != 0 && !read_modrm()) return false;
    unsigned form = form_;
    if (encoding_ == Encoding::legacy && map_ == 0) {
      if ((opcode_ == 0xf6 || opcode_ == 0xf7) && (modrm_ & 0x30) == 0)
        form |= opcode_ == 0xf6 ? kImm8 : kImm32;
      if (opcode_ >= 0xa0 && opcode_ <= 0xa3) return skip(has_67_ ? 4 : 8);
      if (opcode_ >= 0xb8 && opcode_ <= 0xbf && is_wide()) return skip(8);
    }
    if ((form & kRel32) != 0) return read_signed<std::int32_t>(constant_);
    if ((form & kImm16) != 0 && !read_signed<std::int16_t>(constant_)) return false;
    if ((form & kImm32) != 0) {
      const bool is_short = has_66_ && !is_wide();
      if (is_short ? !read_signed<std::int16_t>(constant_) : !read_signed<std::int32_t>(constant_))
        return false;
    }
    if ((form & kImm8) == 0) return true;
    std::int64_t last = 0;
    if (!read_signed<std::int8_t>(last)) return false;
    if ((form & kImm16) == 0)
      constant_ = last;
    else
      nesting_ = last;
    return true;
  }

  bool skip(std::ptrdiff_t count) {
    if (!has(count)) return false;
    at_ += count;
    return true;
  }

  bool read_modrm() {
    if (!has(1)) return false;
    modrm_ = peek();
    ++at_;
    // Moves from and to control and debug registers know no memory.
    const bool is_control =
        encoding_ == Encoding::legacy && map_ == kMap0F && opcode_ >= 0x20 && opcode_ <= 0x23;
    is_memory_ = modrm_ < 0xc0 && !is_control;
    reg_ = static_cast<std::uint8_t>(((modrm_ >> 3) & 7) | ((rex_ & 4) << 1));
    rm_ = static_cast<std::uint8_t>((modrm_ & 7) | ((rex_ & 1) << 3));
    return !is_memory_ || read_address();
  }

  bool read_address() {
    const unsigned mod = modrm_ >> 6;
    unsigned low = modrm_ & 7;
    if (low == 4) {
      if (!has(1)) return false;
      const unsigned sib = peek();
      ++at_;
      low = sib & 7;
      rm_ = static_cast<std::uint8_t>(low | ((rex_ & 1) << 3));
      found_.has_index = (((sib >> 3) & 7) | ((rex_ & 2) << 2)) != 4;
      if (mod == 0 && low == 5) rm_ = kNoRegister;
    } else if (mod == 0 && low == 5) {
      rm_ = kNoRegister;
      found_.is_rip_relative = true;
    }
    std::int64_t displacement = 0;
    if (mod == 1 && !read_signed<std::int8_t>(displacement)) return false;
    if ((mod == 2 || (mod == 0 && low == 5)) && !read_signed<std::int32_t>(displacement)) return false;
    displacement_ = static_cast<std::int32_t>(displacement);
    return true;
  }

  // The operand in memory is a register and a constant away.
  [[nodiscard]] bool is_followed() const {
    return is_memory_ && rm_ != kNoRegister && !found_.has_index && !has_67_ && !has_segment_;
  }

  void write(unsigned reg) { found_.writes |= bit(reg); }
  void write_rm() {
    if (!is_memory_) write(rm_);
  }
  // Without REX the numbers 4 to 7 of a byte register are the second bytes of 0 to 3.
  [[nodiscard]] unsigned byte_register(unsigned reg) const { return rex_ == 0 && reg >= 4 ? reg - 4 : reg; }
  void write_byte_rm() {
    if (!is_memory_) write(byte_register(rm_));
  }
  void set(Effect effect, std::uint8_t to, std::uint8_t from, std::int64_t value = 0) {
    found_.effect = effect;
    found_.to = to;
    found_.from = from;
    found_.value = static_cast<std::int32_t>(value);
  }

  void set_target(Flow flow) {
    found_.flow = flow;
    found_.target = found_.length + constant_;
  }

  // Of 16 bits with the prefix: no compiler does that.
  void push(std::uint8_t from) {
    if (has_66_)
      write(kRsp);
    else
      set(Effect::push, kNoRegister, from);
  }
  void pop(std::uint8_t to) {
    if (!has_66_) return set(Effect::pop, to, kNoRegister);
    write(kRsp);
    if (to != kNoRegister) write(to);
  }

  void find_one_byte_effect() {
    const unsigned low = opcode_ & 7;
    if (opcode_ < 0x40) return find_arithmetic();
    switch (opcode_ >> 3) {
      case 0x50 >> 3:
        return push(static_cast<std::uint8_t>(low | ((rex_ & 1) << 3)));
      case 0x58 >> 3:
        return pop(static_cast<std::uint8_t>(low | ((rex_ & 1) << 3)));
      case 0x70 >> 3:
      case 0x78 >> 3:
        return set_target(Flow::branch);
      case 0x80 >> 3:
      case 0x88 >> 3:
        return find_move();
      case 0x90 >> 3:
        return find_exchange_with_rax(low | ((rex_ & 1) << 3));
      case 0xb0 >> 3:
        return write(byte_register(low | ((rex_ & 1) << 3)));
      case 0xb8 >> 3:
        return write(low | ((rex_ & 1) << 3));
      case 0xf0 >> 3:
      case 0xf8 >> 3:
        return find_last_row();
      default:
        return find_remaining();
    }
  }

  void find_arithmetic() {
    constexpr unsigned kCompare = 7;
    const unsigned form = opcode_ & 7;
    if (opcode_ >> 3 == kCompare) {
      if ((form == 1 || form == 3) && is_wide() && !is_memory_) set(Effect::compare, rm_, reg_);
      return;
    }
    if (form == 0) return write_byte_rm();
    if (form == 1) return write_rm();
    if (form == 2) return write(byte_register(reg_));
    write(form == 3 ? reg_ : kRax);
  }

  // 80 to 8f
  void find_move() {
    switch (opcode_) {
      case 0x80:
      case 0x81:
      case 0x83:
        return find_arithmetic_with_constant();
      case 0x86:
        write_byte_rm();
        return write(byte_register(reg_));
      case 0x87:
        if (is_wide() && !is_memory_) return set(Effect::exchange, rm_, reg_);
        write_rm();
        return write(reg_);
      case 0x88:
        return write_byte_rm();
      case 0x89:
        if (is_wide() && !is_memory_) return set(Effect::add, rm_, reg_);
        if (is_wide() && is_followed()) return set(Effect::store, rm_, reg_, displacement_);
        return write_rm();
      case 0x8a:
        return write(byte_register(reg_));
      case 0x8b:
        if (is_wide() && !is_memory_) return set(Effect::add, reg_, rm_);
        if (is_wide() && is_followed()) return set(Effect::load, reg_, rm_, displacement_);
        return write(reg_);
      case 0x8c:
        return write_rm();
      case 0x8d:
        has_segment_ = false;
        if (is_wide() && is_followed()) return set(Effect::add, reg_, rm_, displacement_);
        return write(reg_);
      case 0x8f:
        return pop(is_memory_ ? kNoRegister : rm_);
      default:  // test, mov to a segment register
        return;
    }
  }

  void find_arithmetic_with_constant() {
    constexpr unsigned kAdd = 0;
    constexpr unsigned kSubtract = 5;
    constexpr unsigned kCompare = 7;
    const unsigned operation = (modrm_ >> 3) & 7;
    if (operation == kCompare) return;
    if (opcode_ == 0x80) return write_byte_rm();
    const bool is_sum = operation == kAdd || operation == kSubtract;
    if (!is_sum || !is_wide() || is_memory_) return write_rm();
    set(Effect::add, rm_, rm_, operation == kAdd ? constant_ : -constant_);
    if (found_.value != (operation == kAdd ? constant_ : -constant_)) {  // -(-2^31)
      set(Effect::none, kNoRegister, kNoRegister);
      write(rm_);
    }
  }

  void find_exchange_with_rax(unsigned reg) {
    if (opcode_ >= 0x98) return find_remaining();
    found_.is_nop = reg == kRax && repeat_ == kNone;
    if (reg == kRax) return;  // or pause
    if (is_wide()) return set(Effect::exchange, static_cast<std::uint8_t>(reg), kRax);
    write(reg);
    write(kRax);
  }

  void find_last_row() {
    const unsigned operation = (modrm_ >> 3) & 7;
    switch (opcode_) {
      case 0xf1:
      case 0xf4:
        found_.flow = Flow::stop;
        return;
      case 0xf6:
        if (operation >= 4) write(kRax);
        if (operation == 2 || operation == 3) write_byte_rm();
        return;
      case 0xf7:
        if (operation >= 4) found_.writes |= bit(kRax) | bit(kRdx);
        if (operation == 2 || operation == 3) write_rm();
        return;
      case 0xfe:
        return write_byte_rm();
      case 0xff:
        return find_group_5(operation);
      default:
        return;
    }
  }

  void find_group_5(unsigned operation) {
    switch (operation) {
      case 0:
      case 1:
        if (is_wide() && !is_memory_) return set(Effect::add, rm_, rm_, operation == 0 ? 1 : -1);
        return write_rm();
      case 2:
      case 3:
        found_.flow = Flow::call;
        return;
      case 4:
      case 5:
        found_.flow = Flow::indirect_jump;
        found_.value = displacement_;
        return;
      case 6:
        return push(is_memory_ ? kNoRegister : rm_);
      default:
        found_.flow = Flow::stop;
    }
  }

  void write_of_string(unsigned registers) {
    found_.writes |= static_cast<std::uint16_t>(registers | (repeat_ != kNone ? bit(kRcx) : 0U));
  }

  void find_remaining() {
    switch (opcode_) {
      case 0x63:
      case 0x69:
      case 0x6b:
        return write(reg_);
      case 0x68:
      case 0x6a:
      case 0x9c:
        return push(kNoRegister);
      case 0x9d:
        return pop(kNoRegister);
      case 0x6c:
      case 0x6d:
      case 0xaa:
      case 0xab:
      case 0xae:
      case 0xaf:
        return write_of_string(bit(kRdi));
      case 0x6e:
      case 0x6f:
        return write_of_string(bit(kRsi));
      case 0xa4:
      case 0xa5:
      case 0xa6:
      case 0xa7:
        return write_of_string(bit(kRsi) | bit(kRdi));
      case 0xac:
      case 0xad:
        return write_of_string(bit(kRax) | bit(kRsi));
      case 0x98:
      case 0x9f:
      case 0xa0:
      case 0xa1:
      case 0xcd:  // int $0x80 is a system call
      case 0xd7:
      case 0xe4:
      case 0xe5:
      case 0xec:
      case 0xed:
        return write(kRax);
      case 0x99:
        return write(kRdx);
      case 0xc0:
      case 0xd0:
      case 0xd2:
      case 0xc6:
        return write_byte_rm();
      case 0xc1:
      case 0xd1:
      case 0xd3:
        return write_rm();
      case 0xc7:
        if (modrm_ == 0xf8) return write(kRax);  // xbegin
        if (is_wide() && is_followed()) return set(Effect::store, rm_, kNoRegister, displacement_);
        return write_rm();
      case 0xdf:
        if (modrm_ == 0xe0) write(kRax);  // fnstsw
        return;
      case 0xc2:
      case 0xc3:
        found_.flow = Flow::ret;
        return;
      case 0xca:
      case 0xcb:
      case 0xcf:
        found_.flow = Flow::indirect_jump;
        return;
      case 0xc8:
        if (nesting_ != 0) {
          found_.writes |= bit(kRsp) | bit(kRbp);
          return;
        }
        return set(Effect::enter, kNoRegister, kNoRegister, constant_ & 0xffff);
      case 0xc9:
        found_.effect = Effect::leave;
        return;
      case 0xcc:
        found_.flow = Flow::stop;
        return;
      case 0xe0:
      case 0xe1:
      case 0xe2:
        write(kRcx);
        return set_target(Flow::branch);
      case 0xe3:
        return set_target(Flow::branch);
      case 0xe8:
        return set_target(Flow::call);
      case 0xe9:
      case 0xeb:
        return set_target(Flow::jump);
      default:
        return;
    }
  }

  void find_two_byte_effect() {
    const unsigned operation = (modrm_ >> 3) & 7;
    if (opcode_ >= 0x40 && opcode_ < 0x50) return write(reg_);  // cmov
    if (opcode_ >= 0x80 && opcode_ < 0x90) return set_target(Flow::branch);
    if (opcode_ >= 0x90 && opcode_ < 0xa0) return write_byte_rm();
    if (opcode_ >= 0xc8 && opcode_ < 0xd0) return write((opcode_ & 7) | ((rex_ & 1) << 3));
    switch (opcode_) {
      case 0x00:
        if (operation < 2) write_rm();
        return;
      case 0x01:
        return find_system_group(operation);
      case 0x05:
        found_.writes |= bit(kRax) | bit(kRcx) | bit(kR11);
        return;
      case 0x07:
      case 0x35:
        found_.flow = Flow::indirect_jump;
        return;
      case 0x0b:
      case 0xb9:
      case 0xff:
        found_.flow = Flow::stop;
        return;
      case 0x1f:
        found_.is_nop = true;
        return;
      case 0x1e:
        if (repeat_ == kF3 && operation == 1) write_rm();  // rdssp
        return;
      case 0x20:
      case 0x21:
      case 0xa4:
      case 0xa5:
      case 0xab:
      case 0xac:
      case 0xad:
      case 0xb3:
      case 0xbb:
        return write_rm();
      case 0x2c:
      case 0x2d:
        if (repeat_ != kNone) write(reg_);
        return;
      case 0x31:
      case 0x32:
      case 0x33:
        found_.writes |= bit(kRax) | bit(kRdx);
        return;
      case 0x7e:
        if (repeat_ != kF3) write_rm();
        return;
      case 0xa0:
      case 0xa8:
        return push(kNoRegister);
      case 0xa1:
      case 0xa9:
        return pop(kNoRegister);
      case 0xa2:
        found_.writes |= bit(kRax) | bit(kRbx) | bit(kRcx) | bit(kRdx);
        return;
      case 0xae:
        if (repeat_ == kF3 && operation < 2) write_rm();  // rdfsbase, rdgsbase
        return;
      case 0xb0:
        write(kRax);
        return write_byte_rm();
      case 0xb1:
        write(kRax);
        return write_rm();
      case 0xba:
        if (operation > 4) write_rm();
        return;
      case 0xc0:
        write(byte_register(reg_));
        return write_byte_rm();
      case 0xc1:
        write(reg_);
        return write_rm();
      case 0xc7:
        if (operation == 1) found_.writes |= bit(kRax) | bit(kRdx);
        if (operation >= 6) write_rm();
        return;
      case 0x02:
      case 0x03:
      case 0x50:
      case 0xaf:
      case 0xb2:
      case 0xb4:
      case 0xb5:
      case 0xb6:
      case 0xb7:
      case 0xb8:
      case 0xbc:
      case 0xbd:
      case 0xbe:
      case 0xbf:
      case 0xc5:
      case 0xd7:
        return write(reg_);
      default:
        return;
    }
  }

  void find_system_group(unsigned operation) {
    if (operation == 4) return write_rm();  // smsw
    if (is_memory_) return;
    const bool reads_counters = modrm_ == 0xf9;                   // rdtscp
    const bool reads_control = modrm_ == 0xd0 || modrm_ == 0xee;  // xgetbv, rdpkru
    if (reads_counters) write(kRcx);
    if (reads_counters || reads_control) found_.writes |= bit(kRax) | bit(kRdx);
  }

  void find_three_byte_effect() {
    if (map_ == kMap0F3A) {
      if (opcode_ >= 0x14 && opcode_ <= 0x17) write_rm();
      if (opcode_ == 0x61 || opcode_ == 0x63) write(kRcx);
      return;
    }
    const bool is_checksum = repeat_ == kF2;
    if (opcode_ == 0xf0 || (opcode_ == 0xf1 && is_checksum)) write(reg_);  // movbe, crc32
    if (opcode_ == 0xf6 && mandatory() != kNone) write(reg_);              // adcx, adox
  }

  // General registers that instructions with VEX, EVEX and XOP prefixes write.
  void find_vector_writes() {
    if (encoding_ == Encoding::xop) {
      if (map_ == 9 && (opcode_ == 0x01 || opcode_ == 0x02)) write(vector_register_);
      if (map_ == 10 && opcode_ == 0x10) write(reg_);
      return;
    }
    constexpr unsigned kHalfPrecision = 5;
    const bool is_scalar = repeat_ == kF3 || repeat_ == kF2;
    if (map_ == kMap0F || map_ == kHalfPrecision) {
      const bool is_conversion = opcode_ == 0x2c || opcode_ == 0x2d ||
                                 (encoding_ == Encoding::evex && (opcode_ == 0x78 || opcode_ == 0x79));
      if (is_conversion && is_scalar) write(reg_);
      if (opcode_ == 0x7e && repeat_ == k66) write_rm();
      const bool is_mask = opcode_ == 0x50 || opcode_ == 0xd7 || opcode_ == 0x93 || opcode_ == 0xc5;
      if (is_mask && map_ == kMap0F) write(reg_);
    } else if (map_ == kMap0F3A) {
      if (opcode_ >= 0x14 && opcode_ <= 0x17) write_rm();
      if (encoding_ == Encoding::evex) return;
      if (opcode_ == 0x61 || opcode_ == 0x63) write(kRcx);
      if (opcode_ == 0xf0) write(reg_);  // rorx
    } else if (map_ == kMap0F38 && encoding_ == Encoding::vex) {
      if (opcode_ == 0xf2 || opcode_ == 0xf5 || opcode_ == 0xf6 || opcode_ == 0xf7) write(reg_);
      if (opcode_ == 0xf3 || opcode_ == 0xf6) write(vector_register_);
    }
  }

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  Instruction& found_;

  Encoding encoding_ = Encoding::legacy;
  bool has_66_ = false;
  bool has_67_ = false;
  bool has_segment_ = false;
  bool is_memory_ = false;
  Mandatory repeat_ = kNone;
  unsigned rex_ = 0;
  unsigned map_ = 0;
  unsigned opcode_ = 0;
  unsigned form_ = kPlain;
  unsigned modrm_ = 0;
  unsigned vector_register_ = 0;
  std::uint8_t reg_ = kNoRegister;
  std::uint8_t rm_ = kNoRegister;
  std::int32_t displacement_ = 0;
  std::int64_t constant_ = 0;
  std::int64_t nesting_ = 0;
};

}  // namespace

std::optional<Instruction> decode(std::span<const std::byte> code) {
  std::optional<Instruction> found(std::in_place);
  if (!Decoder(code, *found).run()) found.reset();
  return found;
}

}  // namespace ddprof::x86_64
