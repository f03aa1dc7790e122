// lazy_binding SECONDS: calls two functions of libc whose addresses are looked up anew for each call, as the
// first calls of a program that is not linked with -z now are. Nearly all time is spent below
// _dl_runtime_resolve.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <search.h>
#include <stdlib.h>

#include "burn.h"

enum { MAX_SLOTS = 64 };

struct slots {
  uintptr_t* place[MAX_SLOTS];
  uintptr_t unbound[MAX_SLOTS];
  size_t count;
};

static uintptr_t dynamic_value(const struct dl_phdr_info* program, ElfW(Sxword) tag) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    if (program->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn)* entry = (const ElfW(Dyn)*)(program->dlpi_addr + program->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return entry->d_un.d_ptr;
    }
  }
  return 0;
}

// The slots of the imports of the program itself that have not been bound yet: they point back into its
// stubs.
static int find_slots(struct dl_phdr_info* program, size_t size, void* context) {
  (void)size;
  struct slots* slots = context;
  const ElfW(Rela)* entry = (const ElfW(Rela)*)dynamic_value(program, DT_JMPREL);
  const size_t count = dynamic_value(program, DT_PLTRELSZ) / sizeof *entry;
  for (size_t i = 0; i < count; ++i) {
    uintptr_t* place = (uintptr_t*)(program->dlpi_addr + entry[i].r_offset);
    const uintptr_t distance = *place - (uintptr_t)&find_slots + (1u << 20);
    if (distance > 2u << 20 || slots->count == MAX_SLOTS) continue;
    slots->place[slots->count] = place;
    slots->unbound[slots->count++] = *place;
  }
  return 1;
}

static int compare(const void* left, const void* right) { return *(const char*)left - *(const char*)right; }

NOINLINE void bind_and_call(const struct slots* slots) {
  for (size_t i = 0; i < slots->count; ++i) *slots->place[i] = slots->unbound[i];
  size_t count = 1;
  if (a64l("x") == 0 || lfind("x", "x", &count, 1, compare) == NULL) abort();
}

NOINLINE void bind_for(const struct slots* slots, uint64_t deadline) {
  while (thread_cpu_ns() < deadline) {
    for (int i = 0; i < 200; ++i) bind_and_call(slots);
  }
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  struct slots slots = {.count = 0};
  dl_iterate_phdr(find_slots, &slots);
  if (slots.count < 2) {
    fprintf(stderr, "lazy_binding: bound at its start\n");
    return 1;
  }
  bind_for(&slots, thread_cpu_ns() + seconds_to_ns(argument(argc, argv, 1, "1")));
  return 0;
}
