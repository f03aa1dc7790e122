#include "unwind/instruction_x86_64.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace ddprof {
namespace {

using x86_64::decode;
using x86_64::Instruction;
using Effect = Instruction::Effect;
using Flow = Instruction::Flow;

std::vector<std::byte> instruction_bytes(std::initializer_list<unsigned> bytes) {
  std::vector<std::byte> made;
  for (const unsigned byte : bytes) made.push_back(static_cast<std::byte>(byte));
  return made;
}

// Decodes one that fills the bytes; every shorter piece of it is none.
Instruction decoded(std::initializer_list<unsigned> bytes) {
  SCOPED_TRACE(testing::PrintToString(std::vector<unsigned>(bytes)));
  const auto code = instruction_bytes(bytes);
  for (std::size_t size = 0; size < code.size(); ++size)
    EXPECT_FALSE(decode(std::span(code).first(size))) << size;
  const auto instruction = decode(code);
  EXPECT_TRUE(instruction);
  if (!instruction) return {};
  EXPECT_EQ(instruction->length, code.size());
  return *instruction;
}

void expect_effect(std::initializer_list<unsigned> bytes, Effect effect, unsigned to, unsigned from,
                   std::int32_t value = 0) {
  SCOPED_TRACE(testing::PrintToString(std::vector<unsigned>(bytes)));
  const Instruction instruction = decoded(bytes);
  EXPECT_EQ(instruction.flow, Flow::next);
  EXPECT_EQ(instruction.effect, effect);
  EXPECT_EQ(instruction.to, to);
  EXPECT_EQ(instruction.from, from);
  EXPECT_EQ(instruction.value, value);
  EXPECT_EQ(instruction.writes, 0);
}

void expect_writes(std::initializer_list<unsigned> bytes, unsigned registers) {
  SCOPED_TRACE(testing::PrintToString(std::vector<unsigned>(bytes)));
  const Instruction instruction = decoded(bytes);
  EXPECT_EQ(instruction.effect, Effect::none);
  EXPECT_EQ(instruction.writes, registers);
}

constexpr unsigned kNone = x86_64::kNoRegister;

TEST(InstructionX86, PushesAndPops) {
  expect_effect({0x55}, Effect::push, kNone, 5);
  expect_effect({0x41, 0x57}, Effect::push, kNone, 15);
  expect_effect({0x6a, 0x10}, Effect::push, kNone, kNone);
  expect_effect({0x68, 1, 2, 3, 4}, Effect::push, kNone, kNone);
  expect_effect({0xff, 0x75, 0xf8}, Effect::push, kNone, kNone);  // push -8(%rbp)
  expect_effect({0x5b}, Effect::pop, 3, kNone);
  expect_effect({0x41, 0x5c}, Effect::pop, 12, kNone);
  expect_effect({0x8f, 0x45, 0x08}, Effect::pop, kNone, kNone);  // pop 8(%rbp)
  expect_effect({0x9c}, Effect::push, kNone, kNone);             // pushf
  expect_effect({0x9d}, Effect::pop, kNone, kNone);
  expect_effect({0xc9}, Effect::leave, kNone, kNone);
  expect_effect({0xc8, 0x20, 0x01, 0x00}, Effect::enter, kNone, kNone, 0x120);
  expect_writes({0xc8, 0x20, 0x01, 0x01}, 0x30);  // with a display of outer frames
  expect_writes({0x66, 0x50}, 0x10);              // two bytes
}

TEST(InstructionX86, MovesTheStackPointerByConstants) {
  expect_effect({0x48, 0x83, 0xec, 0x18}, Effect::add, 4, 4, -0x18);
  expect_effect({0x48, 0x81, 0xec, 0, 0x10, 0, 0}, Effect::add, 4, 4, -0x1000);
  expect_effect({0x48, 0x83, 0xc4, 0x80}, Effect::add, 4, 4, -0x80);
  expect_effect({0x48, 0x8d, 0x64, 0x24, 0x08}, Effect::add, 4, 4, 8);   // lea 8(%rsp),%rsp
  expect_effect({0x48, 0x8d, 0x65, 0xd8}, Effect::add, 4, 5, -0x28);     // lea -0x28(%rbp),%rsp
  expect_effect({0x49, 0x8d, 0x62, 0xf8}, Effect::add, 4, 10, -8);       // lea -8(%r10),%rsp
  expect_effect({0x4c, 0x8d, 0x54, 0x24, 0x08}, Effect::add, 10, 4, 8);  // lea 8(%rsp),%r10
  expect_effect({0x48, 0xff, 0xcc}, Effect::add, 4, 4, -1);
  expect_writes({0x48, 0x83, 0xe4, 0xf0}, 0x10);           // and $-16,%rsp
  expect_writes({0x48, 0x29, 0xc4}, 0x10);                 // sub %rax,%rsp
  expect_writes({0x83, 0xec, 0x18}, 0x10);                 // sub $0x18,%esp
  expect_writes({0x48, 0x8d, 0x24, 0x04}, 0x10);           // lea (%rsp,%rax),%rsp
  expect_writes({0x48, 0x81, 0xec, 0, 0, 0, 0x80}, 0x10);  // no 32 bits hold the sum
}

TEST(InstructionX86, MovesRegistersAndWords) {
  expect_effect({0x48, 0x89, 0xe5}, Effect::add, 5, 4);
  expect_effect({0x48, 0x8b, 0xec}, Effect::add, 5, 4);
  expect_effect({0x48, 0x87, 0xe0}, Effect::exchange, 0, 4);  // xchg %rsp,%rax
  expect_effect({0x48, 0x94}, Effect::exchange, 4, 0);
  expect_effect({0x48, 0x89, 0x5c, 0x24, 0xf8}, Effect::store, 4, 3, -8);
  expect_effect({0x48, 0x8b, 0x5c, 0x24, 0xf8}, Effect::load, 3, 4, -8);
  expect_effect({0x48, 0x8b, 0xac, 0x24, 0, 1, 0, 0}, Effect::load, 5, 4, 0x100);
  expect_effect({0x48, 0xc7, 0x04, 0x24, 1, 0, 0, 0}, Effect::store, 4, kNone);
  expect_effect({0x48, 0x39, 0xdc}, Effect::compare, 4, 3);
  expect_writes({0x89, 0xe5}, 0x20);                                // half of it
  expect_writes({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}, 1);  // mov %fs:0x28,%rax
  expect_writes({0x48, 0x8b, 0x05, 1, 2, 3, 4}, 1);                 // rip-relative
  expect_writes({0x48, 0x8b, 0x04, 0xcb}, 1);                       // with an index
  expect_writes({0x88, 0xdc}, 1);                                   // mov %bl,%ah
  expect_writes({0x40, 0x88, 0xdc}, 0x10);                          // mov %bl,%spl
}

TEST(InstructionX86, SaysWhereControlGoes) {
  EXPECT_EQ(decoded({0xc3}).flow, Flow::ret);
  EXPECT_EQ(decoded({0xf3, 0xc3}).flow, Flow::ret);
  EXPECT_EQ(decoded({0xf2, 0xc3}).flow, Flow::ret);
  EXPECT_EQ(decoded({0xc2, 8, 0}).flow, Flow::ret);
  EXPECT_EQ(decoded({0x0f, 0x0b}).flow, Flow::stop);
  EXPECT_EQ(decoded({0xf4}).flow, Flow::stop);
  EXPECT_EQ(decoded({0xcc}).flow, Flow::stop);
  EXPECT_EQ(decoded({0xff, 0xd0}).flow, Flow::call);
  EXPECT_FALSE(decoded({0xff, 0xd0}).target);
  EXPECT_EQ(decoded({0x3e, 0xff, 0xe0}).flow, Flow::indirect_jump);  // notrack jmp *%rax
  EXPECT_TRUE(decoded({0xf2, 0xff, 0x25, 1, 0, 0, 0}).is_rip_relative);
  EXPECT_TRUE(decoded({0xff, 0x24, 0xc5, 0, 0, 0, 0}).has_index);
  const Instruction call = decoded({0xe8, 0x10, 0, 0, 0});
  EXPECT_EQ(call.flow, Flow::call);
  EXPECT_EQ(call.target, 0x15);
  EXPECT_EQ(decoded({0xf2, 0xe9, 0xf0, 0xff, 0xff, 0xff}).target, -10);  // bnd jmp
  EXPECT_EQ(decoded({0xeb, 0xfe}).target, 0);
  EXPECT_EQ(decoded({0x74, 0x10}).flow, Flow::branch);
  EXPECT_EQ(decoded({0x74, 0x10}).target, 0x12);
  EXPECT_EQ(decoded({0x0f, 0x85, 0, 1, 0, 0}).target, 0x106);
  EXPECT_EQ(decoded({0xe2, 0xfe}).flow, Flow::branch);            // loop
  EXPECT_EQ(decoded({0xf3, 0x0f, 0x1e, 0xfa}).flow, Flow::next);  // endbr64
}

TEST(InstructionX86, KnowsPadding) {
  EXPECT_TRUE(decoded({0x90}).is_nop);
  EXPECT_TRUE(decoded({0x66, 0x90}).is_nop);
  EXPECT_TRUE(decoded({0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}).is_nop);
  EXPECT_FALSE(decoded({0xf3, 0x90}).is_nop);  // pause
  EXPECT_FALSE(decoded({0x49, 0x90}).is_nop);  // xchg %r8,%rax
}

TEST(InstructionX86, KnowsTheLengthsOfVectorInstructions) {
  expect_writes({0xc5, 0xf8, 0x77}, 0);                                      // vzeroupper
  expect_writes({0xc4, 0xe3, 0x7d, 0x19, 0xc1, 0x01}, 0);                    // vextractf128 $1,%ymm0,%xmm1
  expect_writes({0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x47, 0x01}, 0);              // vmovdqu64 64(%rdi),%zmm0
  expect_writes({0x62, 0xf1, 0x7c, 0x48, 0x10, 0x84, 0x24, 1, 2, 3, 4}, 0);  // SIB and four bytes
  expect_writes({0x62, 0xf3, 0xfd, 0x48, 0x3b, 0xc0, 0x01}, 0);              // map 3 has a constant
  expect_writes({0x62, 0xf1, 0x7d, 0x48, 0x72, 0xd0, 0x05}, 0);              // vpsrld $5,%zmm0,%zmm0
  expect_writes({0x62, 0xf1, 0xfd, 0x08, 0x7e, 0xc3}, 8);                    // vmovq %xmm0,%rbx
  expect_writes({0x8f, 0xe8, 0x78, 0xc0, 0xc1, 0x05}, 0);                    // vprotb
  expect_writes({0xc4, 0xe2, 0xf3, 0xf6, 0xd8}, 0xa);                        // mulx %rax,%rcx,%rbx
  expect_writes({0xc4, 0xe3, 0xfb, 0xf0, 0xd8, 0x05}, 8);                    // rorx $5,%rax,%rbx
}

TEST(InstructionX86, KnowsLengthsThatDependOnPrefixes) {
  expect_writes({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 1);
  expect_writes({0x66, 0xb8, 1, 2}, 1);
  expect_writes({0x66, 0x48, 0x81, 0xc8, 1, 2, 3, 4}, 1);  // the wide one wins
  expect_writes({0x66, 0x81, 0xc8, 1, 2}, 1);
  expect_writes({0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 1);
  expect_writes({0x67, 0xa1, 1, 2, 3, 4}, 1);
  expect_writes({0xf7, 0xc0, 1, 2, 3, 4}, 0);  // test, with a constant
  expect_writes({0xf7, 0xd0}, 1);              // not, without
  expect_writes({0xf2, 0x0f, 0x78, 0xc1, 1, 2}, 0);
  expect_writes({0x48, 0x66, 0xb8, 1, 2}, 1);  // REX before another prefix does not count
}

TEST(InstructionX86, RefusesWhatIsNone) {
  for (const unsigned byte : {0x06U, 0x27U, 0x60U, 0x82U, 0x9aU, 0xd4U, 0xeaU})
    EXPECT_FALSE(decode(instruction_bytes({byte, 0, 0, 0, 0, 0, 0, 0})));
  const std::vector<std::byte> prefixes(16, std::byte{0x66});
  EXPECT_FALSE(decode(prefixes));
}

}  // namespace
}  // namespace ddprof
