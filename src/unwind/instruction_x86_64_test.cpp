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

TEST(InstructionX86, WritesOfArithmeticAreThoseOfTheRegisterInItsWidth) {
  expect_writes({0x00, 0xc4}, 1);     // add %al,%ah
  expect_writes({0x01, 0xc4}, 0x10);  // add %eax,%esp
  expect_writes({0x02, 0xe0}, 1);     // add %al,%ah, in the other encoding
  expect_writes({0x03, 0xe0}, 0x10);
  expect_writes({0x04, 1}, 1);
  expect_writes({0x05, 1, 2, 3, 4}, 1);
  expect_writes({0x80, 0xc4, 1}, 1);                        // add $1,%ah
  expect_writes({0x48, 0x83, 0x04, 0x24, 8}, 0);            // add $8,(%rsp)
  expect_writes({0xf6, 0xc1, 1}, 0);                        // test
  expect_writes({0xf6, 0xc9, 1}, 0);                        // test, in the other encoding
  expect_writes({0xf6, 0xd1}, 2);                           // not %cl
  expect_writes({0xf6, 0xd9}, 2);                           // neg %cl
  expect_writes({0xf6, 0xe1}, 1);                           // mul %cl
  expect_writes({0xf6, 0xf9}, 1);                           // idiv %cl
  expect_writes({0xf7, 0xd9}, 2);                           // neg %ecx
  expect_writes({0xf7, 0xe1}, 5);                           // mul %ecx
  expect_writes({0xf7, 0xf9}, 5);                           // idiv %ecx
  expect_writes({0xfe, 0xc1}, 2);                           // inc %cl
  expect_writes({0xff, 0xcc}, 0x10);                        // dec %esp
  expect_writes({0x48, 0xff, 0x04, 0x24}, 0);               // inc (%rsp)
  expect_effect({0x48, 0xff, 0xc4}, Effect::add, 4, 4, 1);  // inc %rsp
  expect_writes({0xc0, 0xe4, 1}, 1);                        // shl $1,%ah
  expect_writes({0xc1, 0xe4, 1}, 0x10);                     // shl $1,%esp
  for (const unsigned opcode : {0xd1U, 0xd3U}) expect_writes({opcode, 0xe4}, 0x10);  // shl %esp
  for (const unsigned opcode : {0xd0U, 0xd2U}) expect_writes({opcode, 0xe4}, 1);     // shl %ah
  expect_writes({0x48, 0x63, 0xd9}, 8);                                              // movslq %ecx,%rbx
  expect_writes({0x69, 0xd9, 1, 2, 3, 4}, 8);                                        // imul
  expect_writes({0x6b, 0xd9, 1}, 8);
  expect_writes({0x98}, 1);
  expect_writes({0x99}, 4);
}

TEST(InstructionX86, ComparesWholeRegistersOnly) {
  expect_effect({0x48, 0x3b, 0xe3}, Effect::compare, 3, 4);  // cmp %rbx,%rsp
  expect_writes({0x39, 0xdc}, 0);                            // cmp %ebx,%esp
  expect_writes({0x48, 0x39, 0x1c, 0x24}, 0);                // cmp %rbx,(%rsp)
  expect_writes({0x38, 0xdc}, 0);
  expect_writes({0x48, 0x3d, 1, 2, 3, 4}, 0);
  expect_writes({0x48, 0x83, 0xfc, 0x10}, 0);  // cmp $16,%rsp
  expect_writes({0x84, 0xe4}, 0);              // test
  expect_writes({0x85, 0xe4}, 0);
}

TEST(InstructionX86, WritesOfMovesThatAreNotFollowed) {
  expect_writes({0x88, 0xd8}, 1);                    // mov %bl,%al
  expect_writes({0x8a, 0xe0}, 1);                    // mov %al,%ah
  expect_writes({0x89, 0x1c, 0x24}, 0);              // mov %ebx,(%rsp)
  expect_writes({0x8b, 0x1c, 0x24}, 8);              // mov (%rsp),%ebx
  expect_writes({0x48, 0x89, 0x1d, 1, 2, 3, 4}, 0);  // rip-relative
  expect_writes({0x4a, 0x8b, 0x04, 0x20}, 1);        // mov (%rax,%r12),%rax
  expect_writes({0x65, 0x48, 0x8b, 0x45, 8}, 1);     // mov %gs:8(%rbp),%rax
  expect_writes({0x67, 0x48, 0x8b, 0x45, 8}, 1);     // mov 8(%ebp),%rax
  expect_writes({0x8c, 0xd8}, 1);                    // mov %ds,%eax
  expect_writes({0x8e, 0xd8}, 0);                    // mov %eax,%ds
  expect_writes({0x8d, 0x65, 0xd8}, 0x10);           // lea -0x28(%rbp),%esp
  expect_writes({0xc6, 0xc4, 1}, 1);                 // mov $1,%ah
  expect_writes({0xb4, 1}, 1);                       // mov $1,%ah
  expect_writes({0x40, 0xb4, 1}, 0x10);              // mov $1,%spl
  expect_writes({0x41, 0xbc, 1, 2, 3, 4}, 0x1000);   // mov $..,%r12d
  expect_writes({0x48, 0xbf, 1, 2, 3, 4, 5, 6, 7, 8}, 0x80);
  expect_writes({0xa3, 1, 2, 3, 4, 5, 6, 7, 8}, 0);  // mov %eax, to an address of 8 bytes
  expect_writes({0x48, 0xc7, 0xc0, 1, 0, 0, 0}, 1);  // mov $1,%rax
  expect_writes({0xc7, 0xc3, 1, 0, 0, 0}, 8);        // mov $1,%ebx
  expect_writes({0xc7, 0x04, 0x24, 1, 0, 0, 0}, 0);  // movl $1,(%rsp)
  expect_writes({0x86, 0xd9}, 0xa);                  // xchg %bl,%cl
  expect_writes({0x87, 0xd9}, 0xa);                  // xchg %ebx,%ecx
  expect_writes({0x48, 0x87, 0x1c, 0x24}, 8);        // xchg %rbx,(%rsp)
  expect_writes({0x91}, 3);                          // xchg %ecx,%eax
  EXPECT_FALSE(decoded({0x91}).is_nop);
  expect_effect({0x48, 0x91}, Effect::exchange, 1, 0);
}

TEST(InstructionX86, FollowsEveryFormOfAnAddress) {
  expect_effect({0x48, 0x8b, 0x04, 0x24}, Effect::load, 0, 4);              // (%rsp)
  expect_effect({0x48, 0x8b, 0x03}, Effect::load, 0, 3);                    // (%rbx)
  expect_effect({0x48, 0x8b, 0x44, 0x25, 8}, Effect::load, 0, 5, 8);        // 8(%rbp), with a SIB byte
  expect_effect({0x49, 0x8b, 0x45, 8}, Effect::load, 0, 13, 8);             // 8(%r13)
  expect_effect({0x2e, 0x48, 0x8b, 0x45, 8}, Effect::load, 0, 5, 8);        // %cs does nothing
  expect_effect({0x64, 0x48, 0x8d, 0x65, 0xd8}, Effect::add, 4, 5, -0x28);  // nor does %fs before lea
  expect_effect({0x8f, 0xc3}, Effect::pop, 3, kNone);                       // pop %rbx, the long way
  expect_effect({0xff, 0xf3}, Effect::push, kNone, 3);
  expect_effect({0x48, 0x41, 0x57}, Effect::push, kNone, 15);  // the last REX counts
  expect_effect({0x0f, 0xa0}, Effect::push, kNone, kNone);     // push %fs
  expect_effect({0x0f, 0xa9}, Effect::pop, kNone, kNone);      // pop %gs
  expect_writes({0x66, 0x58}, 0x11);                           // two bytes: pop %ax
  expect_writes({0x66, 0x8f, 0x45, 8}, 0x10);
}

TEST(InstructionX86, WritesOfStringsAndPorts) {
  expect_writes({0xa4}, 0xc0);                 // movsb
  expect_writes({0xf3, 0xa4}, 0xc2);           // rep movsb
  expect_writes({0xf3, 0x48, 0xab}, 0x82);     // rep stosq
  expect_writes({0xf2, 0xae}, 0x82);           // repne scasb
  expect_writes({0xac}, 0x41);                 // lodsb
  expect_writes({0x6c}, 0x80);                 // insb
  expect_writes({0x6e}, 0x40);                 // outsb
  expect_writes({0xe4, 1}, 1);                 // in
  expect_writes({0xcd, 0x80}, 1);              // a system call of 32 bits
  expect_writes({0xe2, 0xfe}, 2);              // loop
  expect_writes({0xdf, 0xe0}, 1);              // fnstsw %ax
  expect_writes({0xdf, 0xe9}, 0);              // fucomip
  expect_writes({0xc7, 0xf8, 1, 2, 3, 4}, 1);  // xbegin
}

TEST(InstructionX86, WritesOfTwoByteOpcodes) {
  expect_writes({0x0f, 0x44, 0xd9}, 8);              // cmove
  expect_writes({0x0f, 0x90, 0xc4}, 1);              // seto %ah
  expect_writes({0x0f, 0x9f, 0xc3}, 8);              // setg %bl
  expect_writes({0x49, 0x0f, 0xcb}, 0x800);          // bswap %r11
  expect_writes({0xf2, 0x0f, 0xd0, 0xc1}, 0);        // addsubps
  expect_writes({0x0f, 0xf6, 0xc1}, 0);              // psadbw
  expect_writes({0x0f, 0x05}, 0x803);                // syscall
  expect_writes({0x0f, 0x31}, 5);                    // rdtsc
  expect_writes({0x0f, 0xa2}, 0xf);                  // cpuid
  expect_writes({0xf3, 0x48, 0x0f, 0x1e, 0xc8}, 1);  // rdssp %rax
  expect_writes({0x0f, 0x1e, 0xc8}, 0);              // a hint without the prefix
  expect_writes({0xf3, 0x0f, 0x1e, 0xfa}, 0);        // endbr64
  expect_writes({0x0f, 0x20, 0x00}, 1);              // mov %cr0,%rax: never memory
  expect_writes({0x0f, 0x23, 0x04}, 0);              // mov %rsp,%db0
  expect_writes({0xf3, 0x0f, 0x2c, 0xc1}, 1);        // cvttss2si
  expect_writes({0x0f, 0x2c, 0xc1}, 0);              // cvttps2pi
  expect_writes({0x66, 0x0f, 0x7e, 0xc3}, 8);        // movd %xmm0,%ebx
  expect_writes({0xf3, 0x0f, 0x7e, 0xc3}, 0);        // movq %xmm3,%xmm0
  for (const unsigned operation : {0xc3U, 0xcbU})
    expect_writes({0xf3, 0x0f, 0xae, operation}, 8);  // rdfsbase
  expect_writes({0xf3, 0x0f, 0xae, 0xd3}, 0);         // wrfsbase
  expect_writes({0x0f, 0xb0, 0xd9}, 3);               // cmpxchg %bl,%cl
  expect_writes({0x0f, 0xb1, 0xd9}, 3);
  expect_writes({0x0f, 0xc0, 0xd9}, 0xa);  // xadd
  expect_writes({0x0f, 0xc1, 0xd9}, 0xa);
  expect_writes({0x0f, 0xba, 0xe3, 1}, 0);  // bt
  expect_writes({0x0f, 0xba, 0xeb, 1}, 8);  // bts
  expect_writes({0x0f, 0xc7, 0x0b}, 5);     // cmpxchg8b
  expect_writes({0x0f, 0xc7, 0xf3}, 8);     // rdrand
  expect_writes({0x0f, 0xc7, 0xfb}, 8);     // rdseed
  expect_writes({0x0f, 0xa4, 0xc3, 4}, 8);  // shld
  for (const unsigned opcode : {0xa5U, 0xabU, 0xadU, 0xb3U, 0xbbU}) expect_writes({0x0f, opcode, 0xc3}, 8);
  for (const unsigned opcode : {0x50U, 0xafU, 0xb6U, 0xb8U, 0xbcU, 0xbeU, 0xd7U})
    expect_writes({0x0f, opcode, 0xd9}, 8);
  expect_writes({0x0f, 0xc5, 0xd9, 1}, 8);  // pextrw
  EXPECT_EQ(decoded({0x0f, 0x78, 0xc1}).flow, Flow::next);
}

TEST(InstructionX86, WritesOfSystemInstructions) {
  expect_writes({0x0f, 0x00, 0xc3}, 8);  // sldt
  expect_writes({0x0f, 0x00, 0xcb}, 8);  // str
  expect_writes({0x0f, 0x00, 0xd3}, 0);  // lldt
  expect_writes({0x0f, 0x01, 0xe3}, 8);  // smsw
  expect_writes({0x0f, 0x01, 0x10}, 0);  // lgdt
  expect_writes({0x0f, 0x01, 0xf9}, 7);  // rdtscp
  expect_writes({0x0f, 0x01, 0xd0}, 5);  // xgetbv
  expect_writes({0x0f, 0x01, 0xee}, 5);  // rdpkru
  expect_writes({0x0f, 0x01, 0xd1}, 0);  // xsetbv
}

TEST(InstructionX86, WritesOfThreeByteOpcodes) {
  expect_writes({0x0f, 0x38, 0xf0, 0x03}, 1);        // movbe (%rbx),%eax
  expect_writes({0x0f, 0x38, 0xf1, 0x03}, 0);        // movbe %eax,(%rbx)
  expect_writes({0xf2, 0x0f, 0x38, 0xf0, 0xc3}, 1);  // crc32
  expect_writes({0xf2, 0x0f, 0x38, 0xf1, 0xc3}, 1);
  expect_writes({0x66, 0x0f, 0x38, 0xf6, 0xc3}, 1);     // adcx
  expect_writes({0xf3, 0x0f, 0x38, 0xf6, 0xc3}, 1);     // adox
  expect_writes({0x0f, 0x38, 0xf6, 0x03}, 0);           // wrss
  expect_writes({0x66, 0x0f, 0x38, 0x00, 0xc1}, 0);     // pshufb
  expect_writes({0x66, 0x0f, 0x3a, 0x0f, 0xc3, 1}, 0);  // palignr
  expect_writes({0x66, 0x0f, 0x3a, 0x14, 0xc3, 1}, 8);  // pextrb
  expect_writes({0x66, 0x0f, 0x3a, 0x17, 0xc3, 1}, 8);  // extractps
  expect_writes({0x66, 0x0f, 0x3a, 0x20, 0xc3, 1}, 0);  // pinsrb
  expect_writes({0x66, 0x0f, 0x3a, 0x61, 0xc1, 1}, 2);  // pcmpestri
  expect_writes({0x66, 0x0f, 0x3a, 0x62, 0xc1, 1}, 0);  // pcmpistrm
  expect_writes({0x66, 0x0f, 0x3a, 0x63, 0xc1, 1}, 2);  // pcmpistri
}

TEST(InstructionX86, WritesOfVectorInstructions) {
  expect_writes({0xc5, 0xfb, 0x2c, 0xc1}, 1);                    // vcvttsd2si
  expect_writes({0xc5, 0xfa, 0x2d, 0xc1}, 1);                    // vcvtss2si
  expect_writes({0xc5, 0xfb, 0x58, 0xc1}, 0);                    // vaddsd
  expect_writes({0xc5, 0xf9, 0x7e, 0xc3}, 8);                    // vmovd %xmm0,%ebx
  expect_writes({0xc5, 0xfa, 0x7e, 0xc1}, 0);                    // vmovq %xmm1,%xmm0
  expect_writes({0xc5, 0xf9, 0x6f, 0xc1}, 0);                    // vmovdqa
  expect_writes({0xc5, 0xf8, 0x50, 0xc1}, 1);                    // vmovmskps
  expect_writes({0xc5, 0xf9, 0xd7, 0xc1}, 1);                    // vpmovmskb
  expect_writes({0xc5, 0xf8, 0x93, 0xc1}, 1);                    // kmovw %k1,%eax
  expect_writes({0xc5, 0xf9, 0xc5, 0xc1, 1}, 1);                 // vpextrw
  expect_writes({0xc4, 0xe2, 0x71, 0x00, 0xc2}, 0);              // vpshufb
  expect_writes({0xc4, 0xe2, 0x70, 0xf2, 0xc3}, 1);              // andn
  expect_writes({0xc4, 0xe2, 0x70, 0xf3, 0xcb}, 2);              // blsr %ebx,%ecx
  expect_writes({0xc4, 0xe2, 0x70, 0xf5, 0xc3}, 1);              // bzhi
  expect_writes({0xc4, 0xe2, 0x70, 0xf7, 0xc3}, 1);              // bextr
  expect_writes({0xc4, 0xe3, 0x79, 0x14, 0xc3, 1}, 8);           // vpextrb
  expect_writes({0xc4, 0xe3, 0x79, 0x17, 0xc3, 1}, 8);           // vextractps
  expect_writes({0xc4, 0xe3, 0x79, 0x61, 0xc1, 1}, 2);           // vpcmpestri
  expect_writes({0xc4, 0xe3, 0x79, 0x62, 0xc1, 1}, 0);           // vpcmpistrm
  expect_writes({0xc4, 0xe3, 0x79, 0x63, 0xc1, 1}, 2);           // vpcmpistri
  expect_writes({0x62, 0xf1, 0x7f, 0x08, 0x78, 0xc1}, 1);        // vcvttsd2usi
  expect_writes({0x62, 0xf1, 0x7f, 0x08, 0x79, 0xc1}, 1);        // vcvtsd2usi
  expect_writes({0x62, 0xf1, 0xff, 0x08, 0x58, 0xc1}, 0);        // vaddsd
  expect_writes({0x62, 0xf2, 0xf5, 0x48, 0x70, 0xc2}, 0);        // vpshldvw: no constant in map 2
  expect_writes({0x62, 0xf3, 0x7d, 0x08, 0x16, 0xc3, 1}, 8);     // vpextrd
  expect_writes({0x62, 0xf5, 0x7e, 0x08, 0x2c, 0xc1}, 1);        // vcvttsh2si
  expect_writes({0x62, 0xf5, 0x7d, 0x08, 0x7e, 0xc3}, 8);        // vmovw
  expect_writes({0x62, 0xf6, 0x7d, 0x48, 0x98, 0xc1}, 0);        // vfmadd132ph: the last map
  expect_writes({0x8f, 0xe9, 0x68, 0x01, 0xcb}, 4);              // blcfill %ebx,%edx
  expect_writes({0x8f, 0xe9, 0x68, 0x02, 0xcb}, 4);              // blcmsk
  expect_writes({0x8f, 0xe9, 0x78, 0xc1, 0xc1}, 0);              // vphaddbw
  expect_writes({0x8f, 0xea, 0x78, 0x10, 0xd3, 1, 2, 3, 4}, 4);  // bextr $..,%ebx,%edx
  expect_writes({0x8f, 0xea, 0x78, 0x12, 0xc3, 1, 2, 3, 4}, 0);  // lwpins
}

TEST(InstructionX86, SaysWhereControlGoesBeyondTheFunction) {
  EXPECT_EQ(decoded({0xca, 8, 0}).flow, Flow::indirect_jump);  // far returns
  EXPECT_EQ(decoded({0xcb}).flow, Flow::indirect_jump);
  EXPECT_EQ(decoded({0xcf}).flow, Flow::indirect_jump);
  EXPECT_EQ(decoded({0x0f, 0x07}).flow, Flow::indirect_jump);  // sysret
  EXPECT_EQ(decoded({0xff, 0x1c, 0x24}).flow, Flow::call);
  EXPECT_EQ(decoded({0xff, 0x2c, 0x24}).flow, Flow::indirect_jump);
  EXPECT_EQ(decoded({0xff, 0x25, 1, 0, 0, 0}).value, 1);
  EXPECT_EQ(decoded({0xff, 0xff}).flow, Flow::stop);
  EXPECT_EQ(decoded({0xf1}).flow, Flow::stop);
  EXPECT_EQ(decoded({0x0f, 0xb9, 0xc1}).flow, Flow::stop);  // ud1
  EXPECT_EQ(decoded({0x0f, 0xff, 0xc1}).flow, Flow::stop);  // ud0
  EXPECT_EQ(decoded({0xe3, 0xfe}).flow, Flow::branch);      // jrcxz
  EXPECT_EQ(decoded({0x0f, 0x80, 0, 0, 0, 0}).flow, Flow::branch);
}

TEST(InstructionX86, RefusesWhatIsNone) {
  for (const unsigned byte : {0x06U, 0x27U, 0x60U, 0x82U, 0x9aU, 0xd4U, 0xeaU})
    EXPECT_FALSE(decode(instruction_bytes({byte, 0, 0, 0, 0, 0, 0, 0})));
  const std::vector<std::byte> prefixes(16, std::byte{0x66});
  EXPECT_FALSE(decode(prefixes));
  // Maps of opcodes that there are not, and EVEX without its fixed bit.
  for (const unsigned map : {0xe0U, 0xe4U})
    EXPECT_FALSE(decode(instruction_bytes({0xc4, map, 0x79, 0x10, 0xc1, 0, 0})));
  for (const unsigned map : {0xf0U, 0xf4U, 0xf7U})
    EXPECT_FALSE(decode(instruction_bytes({0x62, map, 0x7d, 0x48, 0x10, 0xc1, 0, 0})));
  EXPECT_FALSE(decode(instruction_bytes({0x62, 0xf1, 0xfa, 0x48, 0x6f, 0x47, 1})));
  EXPECT_FALSE(decode(instruction_bytes({0x8f, 0xeb, 0x78, 0x10, 0xc3, 1, 2, 3, 4})));
}

}  // namespace
}  // namespace ddprof
