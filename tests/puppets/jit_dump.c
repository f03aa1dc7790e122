// jit_dump SECONDS [FOLDER]: a JIT compiler that tells of its code in FOLDER/jit-PID.dump (default: /tmp),
// with lines and unwinding information; its code has no frame pointers, and uses their register for something
// else. Each function spins in its line 11 and calls back into the program, which burns, in its line 12.
//
// First "jitted_first" runs for half of the time. Then it is moved, "jitted_second" is written over its old
// place, and both run for a quarter each.

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"

NOINLINE void called_back(void) {
  burn_ns(1000000);
  KEEP_FRAME();
}

typedef void (*Jitted)(void (*)(void), unsigned long);

NOINLINE void call_jitted(Jitted jitted) {
  jitted(called_back, 2000000);
  KEEP_FRAME();
}

#if defined(__x86_64__)

// void jitted(void (*callback)(void), unsigned long spins)
static const unsigned char kCode[] = {
    0x55,                    // 0:  push %rbp
    0x31, 0xed,              // 1:  xor  %ebp, %ebp
    0x48, 0x83, 0xec, 0x20,  // 3:  sub  $32, %rsp
    0x48, 0xff, 0xce,        // 7:  dec  %rsi
    0x75, 0xfb,              // 10: jnz  back to dec
    0xff, 0xd7,              // 12: call *%rdi
    0x48, 0x83, 0xc4, 0x20,  // 14: add  $32, %rsp
    0x5d,                    // 18: pop  %rbp
    0xc3,                    // 19: ret
};
enum { kSpinning = 7, kCalling = 12, kCodeBytes = sizeof kCode, kFrameStart = 24 };
_Static_assert(kCodeBytes <= kFrameStart, "the frames follow the code, aligned to 8 bytes");

// .eh_frame as if it followed the code: a CIE, an FDE whose address is relative, the end; then .eh_frame_hdr.
// clang-format off
static const unsigned char kFrames[] = {
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,  // CIE
    0x1c, 0, 0, 0, 0x1c, 0, 0, 0, 0xc8, 0xff, 0xff, 0xff, kCodeBytes, 0, 0, 0, 0,  // FDE: starts 56 before
    0x41, 0x0e, 16, 0x86, 2,                 // from 1: CFA is rsp+16, rbp saved at -16
    0x46, 0x0e, 48,                          // from 7: CFA is rsp+48
    0x4b, 0x0e, 16,                          // from 18
    0x41, 0xc6, 0x0e, 8,                     // from 19: rbp is itself again
    0, 0, 0, 0,                              // the end
    1, 0x1b, 0xff, 0xff, 0xc0, 0xff, 0xff, 0xff,  // header without a table
};
// clang-format on
enum { kHeaderBytes = 8 };

struct Record {
  uint32_t id, size;
  uint64_t time;
};

static void put(int file, const void* data, size_t size) {
  if (write(file, data, size) != (ssize_t)size) exit(1);
}

static void put_record(int file, uint32_t id, size_t payload) {
  const struct Record record = {id, (uint32_t)(sizeof record + payload), clock_ns(CLOCK_MONOTONIC)};
  put(file, &record, sizeof record);
}

static void put_header(int file) {
  const struct {
    uint32_t magic, version, size, machine, reserved, pid;
    uint64_t time, flags;
  } header = {0x4A695444, 1, 40, 62, 0, (uint32_t)getpid(), clock_ns(CLOCK_MONOTONIC), 0};
  put(file, &header, sizeof header);
}

static void put_line(int file, uint64_t address, uint32_t line, const char* name) {
  const struct {
    uint64_t address;
    uint32_t line, discriminator;
  } entry = {address, line, 0};
  put(file, &entry, sizeof entry);
  put(file, name, strlen(name) + 1);
}

static void put_lines(int file, uint64_t start) {
  const char name[] = "/generated/source.jit";
  const uint64_t head[] = {start, 3};
  put_record(file, 2, sizeof head + 3 * 16 + sizeof name + 2 * 2);
  put(file, head, sizeof head);
  put_line(file, start, 10, name);
  put_line(file, start + kSpinning, 11, "\xff");
  put_line(file, start + kCalling, 12, "\xff");
}

static void put_frames(int file) {
  const uint64_t head[] = {sizeof kFrames, kHeaderBytes, 0};
  put_record(file, 4, sizeof head + sizeof kFrames);
  put(file, head, sizeof head);
  put(file, kFrames, sizeof kFrames);
}

static void put_load(int file, uint64_t start, uint64_t index, const char* name) {
  put_lines(file, start);
  put_frames(file);
  const uint64_t head[] = {(uint64_t)getpid() << 32 | (uint32_t)getpid(), start, start, kCodeBytes, index};
  put_record(file, 0, sizeof head + strlen(name) + 1 + kCodeBytes);
  put(file, head, sizeof head);
  put(file, name, strlen(name) + 1);
  put(file, kCode, kCodeBytes);
}

static void put_move(int file, uint64_t from, uint64_t to, uint64_t index) {
  const uint64_t head[] = {(uint64_t)getpid() << 32 | (uint32_t)getpid(), to, from, to, kCodeBytes, index};
  put_record(file, 1, sizeof head);
  put(file, head, sizeof head);
}

// The mapping is how profilers find the file.
static int open_dump(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) exit(1);
  put_header(file);
  const long page = sysconf(_SC_PAGESIZE);
  if (mmap(NULL, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) exit(1);
  return file;
}

static Jitted write_code(unsigned char* place) {
  void* page = (void*)((uintptr_t)place & ~(uintptr_t)4095);
  if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0) exit(1);
  memcpy(place, kCode, kCodeBytes);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) exit(1);
  Jitted jitted;
  memcpy(&jitted, &place, sizeof jitted);
  return jitted;
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  const int file = open_dump(argument(argc, argv, 2, "/tmp"));
  unsigned char* place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return 1;
  unsigned char* new_place = place + 1024;

  put_load(file, (uint64_t)place, 1, "jitted_first");
  Jitted first = write_code(place);
  while (thread_cpu_ns() < total / 2) call_jitted(first);

  first = write_code(new_place);
  put_move(file, (uint64_t)place, (uint64_t)new_place, 1);
  put_load(file, (uint64_t)place, 2, "jitted_second");
  const Jitted second = write_code(place);
  while (thread_cpu_ns() < total) {
    call_jitted(first);
    call_jitted(second);
  }
  put_record(file, 3, 0);
  return 0;
}

#else

int main(void) { return 1; }

#endif
