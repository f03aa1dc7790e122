// contexts SECONDS [makecontext|by_hand]: burns in two contexts with stacks of their own, in turns of a
// millisecond.
//
// makecontext: with and without a context to go on with. by_hand: as libraries of coroutines do it, by
// assembly without CFI that puts a return address under the first function.
#include <string.h>
#include <ucontext.h>

#include "burn.h"

enum { STACK_BYTES = 65536 };

static uint64_t deadline;
static _Alignas(16) char stacks[2][STACK_BYTES];

static ucontext_t main_context, contexts[2];

NOINLINE void burn_in_context(void) {
  burn_ns(1000000);
  KEEP_FRAME();
}

static void run_context(int number) {
  while (thread_cpu_ns() < deadline) {
    burn_in_context();
    swapcontext(&contexts[number], &contexts[1 - number]);
  }
  setcontext(&main_context);
}

static void run_contexts(void) {
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = STACK_BYTES;
    contexts[i].uc_link = i == 0 ? &main_context : NULL;
    makecontext(&contexts[i], (void (*)(void))run_context, 1, i);
  }
  swapcontext(&main_context, &contexts[0]);
}

#ifdef __x86_64__

// switch_stack(from, to): saves what a call keeps on the stack that is left, and takes it from the other one.
// first_of_stack: calls the function in rbx without a call instruction; it returns to the trap behind it.
__asm__(
    ".text\n.p2align 4\n.globl switch_stack\n.type switch_stack,@function\nswitch_stack:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size switch_stack,.-switch_stack\n"
    ".p2align 4\n.globl first_of_stack\n.type first_of_stack,@function\nfirst_of_stack:\n"
    "lea 1f(%rip),%rax\npush %rax\njmp *%rbx\n1: xor %edi,%edi\ncall _exit@PLT\nhlt\n.size "
    "first_of_stack,.-first_of_stack\n");
void switch_stack(void** from, void* to);
void first_of_stack(void);

static void* main_stack;
static void* saved[2];

NOINLINE void take_turns(int number) {
  while (thread_cpu_ns() < deadline) {
    burn_in_context();
    switch_stack(&saved[number], saved[1 - number]);
  }
  switch_stack(&saved[number], main_stack);
}

static void run_first(void) { take_turns(0); }
static void run_second(void) { take_turns(1); }

static void run_by_hand(void) {
  void (*const functions[2])(void) = {run_first, run_second};
  for (int i = 0; i < 2; ++i) {
    uint64_t* top = (uint64_t*)(stacks[i] + STACK_BYTES) - 15;  // so that functions find it aligned
    top[4] = (uint64_t)functions[i];                            // r15 r14 r13 r12 rbx rbp
    top[6] = (uint64_t)first_of_stack;
    saved[i] = top;
  }
  switch_stack(&main_stack, saved[0]);
}

#else
static void run_by_hand(void) { run_contexts(); }
#endif

int main(int argc, char** argv) {
  deadline = thread_cpu_ns() + seconds_to_ns(argument(argc, argv, 1, "1"));
  if (strcmp(argument(argc, argv, 2, "makecontext"), "by_hand") == 0)
    run_by_hand();
  else
    run_contexts();
  return 0;
}
