/* What libddprof.so in the target and the profiler share. Plain C, freestanding, the same for every process.
 *
 * Two memory files, both made by the profiler and sealed at their size:
 *   the arena    a header and slots, one for each process; each process maps its own slot, writable
 *   the tables   unwind tables of all files, read-only for the target
 *
 * Neither side trusts the other. A reader copies a word once and checks it before use; an offset is checked
 * against the size of the mapping that it made itself. */
#ifndef DDPROF_WIRE_HEAP_H
#define DDPROF_WIRE_HEAP_H

#include <stdint.h>  // NOLINT: shared with C

#include "wire/unwind_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the environment of the target: where the arena is, and its nonce. "/proc/PID/fd/N:NONCE:INTERVAL",
 * numbers in hexadecimal. */
#define DDPROF_HEAP_VARIABLE "DD_PROFILING_NATIVE_LIB_SOCKET"
/* "0", "false" or "no": programs that the target executes are not profiled. */
#define DDPROF_HEAP_FOLLOW_VARIABLE "DD_PROFILING_NATIVE_ALLOCATION_PROFILING_FOLLOW_EXECS"

#define DDPROF_HEAP_MAGIC 0x3170616568646464ULL /* "dddheap1" */
#define DDPROF_HEAP_VERSION 1

#define DDPROF_HEAP_SLOTS 256

/* Sizes of the parts of a slot, all powers of two and multiples of a page. */
#define DDPROF_HEAP_RING_BYTES (1U << 20)
#define DDPROF_HEAP_LIVE_KEYS (1U << 18)
#define DDPROF_HEAP_LIVE_BUCKET 8U
#define DDPROF_HEAP_MODULES 2048U

#define DDPROF_HEAP_MAX_FRAMES 4096U /* of one record */

/* --- The arena ------------------------------------------------------------------------------------------ */

/* Who has a slot. The library claims one by writing its pid where there is 0. The profiler frees it when that
 * process is gone and all was read. */
struct ddprof_heap_claim {
  uint32_t pid;     /* in the PID namespace of the profiler's /proc; 0: free */
  uint32_t counted; /* a worker has seen it; by the profiler */
  uint64_t time;    /* CLOCK_MONOTONIC, nanoseconds */
};

enum ddprof_heap_flag {
  DDPROF_HEAP_LIVE = 1, /* blocks that are still allocated are kept track of */
};

/* What the profiler wants. Of a slot it may change while the process runs. */
struct ddprof_heap_control {
  uint64_t interval;       /* mean of the bytes between samples that was asked for; 0: none are taken */
  uint64_t max_per_second; /* samples */
  uint32_t flags;
  uint32_t map; /* which of the two module maps is valid; changes with every new one (modulo 2) */
  uint64_t reserved[5];
};

struct ddprof_heap_header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes; /* slots begin here */
  uint64_t slot_bytes;
  uint64_t nonce;
  uint32_t tables_descriptor; /* of the profiler, beside that of the arena */
  uint32_t root_pid;          /* of the first process; the only one to be followed without FOLLOW */
  uint32_t refused;           /* processes that found no free slot; written by libraries */
  uint32_t limited;           /* processes that have little address space, and were left alone */
  uint32_t refused_told;      /* of these, what the profiler has told; by the profiler */
  uint32_t limited_told;
  struct ddprof_heap_control control; /* that a slot begins with */
  struct ddprof_heap_claim claims[DDPROF_HEAP_SLOTS];
};

/* --- A slot --------------------------------------------------------------------------------------------- */

/* Written by the library; atomic. Bytes are estimates: the weights of the samples. */
struct ddprof_heap_counters {
  uint64_t samples;
  uint64_t lost;       /* samples that the ring had no room for */
  uint64_t lost_bytes; /* what they stand for */
  uint64_t untracked;  /* blocks that the live set had no room for */
  uint64_t untracked_bytes;
  uint64_t nested; /* samples that fell into a signal handler that had interrupted another one */
  uint64_t reused; /* blocks that were allocated anew before their end was seen */
  uint64_t reserved;
};

/* The interval that is in use: it grows while there are more samples than wanted. */
struct ddprof_heap_pace {
  uint64_t interval;
  uint64_t window;  /* number of the current window of time */
  uint64_t samples; /* in it */
  uint64_t full;    /* when it last grew because the ring was full */
  uint64_t reserved[4];
};

struct ddprof_heap_module {
  uint64_t start, end; /* run-time addresses of code */
  uint64_t bias;       /* run-time address - ELF address */
  uint64_t table;      /* offset of its ddprof_heap_table in the tables; 0: none */
  uint64_t patch;      /* the same, of rules that were found later, for what the other has a gap */
};

struct ddprof_heap_map {
  uint32_t count;
  uint32_t version;
  struct ddprof_heap_module modules[DDPROF_HEAP_MODULES]; /* in the order of addresses */
};

/* A block that is alive. A key is the address of the block; 0: free; odd: being written. Keys lie in buckets
 * of a cache line; a block is in one of the DDPROF_HEAP_PROBES buckets from that of its hash on. */
#define DDPROF_HEAP_PROBES 4U
struct ddprof_heap_block {
  uint64_t size;
  uint64_t interval;
  uint64_t stack; /* hash of its frames, as in the record of its sample; 0: that was lost */
  uint64_t time;  /* of its allocation, CLOCK_MONOTONIC, nanoseconds */
};

struct ddprof_heap_slot {
  struct ddprof_heap_control control;
  struct ddprof_heap_counters counters;
  struct ddprof_heap_pace pace;
  uint64_t head; /* of the ring: words that were ever reserved; by the library */
  uint64_t reserved_head[7];
  uint64_t tail; /* words that were ever read; by the profiler */
  uint64_t reserved_tail[7];
  struct ddprof_heap_counters told; /* what of the counters the profiler has told; by the profiler */
  uint8_t pad[4096 - 6 * 64];
  struct ddprof_heap_map maps[2];
  uint8_t pad_maps[(4096 - (2 * (8 + DDPROF_HEAP_MODULES * 40)) % 4096) % 4096];
  uint64_t ring[DDPROF_HEAP_RING_BYTES / 8];
  uint64_t keys[DDPROF_HEAP_LIVE_KEYS];
  struct ddprof_heap_block blocks[DDPROF_HEAP_LIVE_KEYS];
};

/* --- Records of the ring ---------------------------------------------------------------------------------
 */

/* A record begins with a word that says what it is. The writer reserves words by moving the head, says how
 * many, writes the rest, and that word once more. The reader makes all of them 0 again. */
enum ddprof_heap_kind {
  DDPROF_HEAP_NOTHING = 0, /* reserved, or not */
  DDPROF_HEAP_BEGUN = 3,   /* reserved: `payload` is valid */
  DDPROF_HEAP_FRAMES = 1,  /* `payload` words are return addresses, innermost first */
  DDPROF_HEAP_RAW =
      2, /* `payload` words: registers by DWARF number, pc, then the stack from its pointer on */
};

/* What was sampled. */
enum ddprof_heap_what {
  DDPROF_HEAP_ALLOCATION = 0,
  DDPROF_HEAP_MAPPING = 1, /* anonymous memory by mmap */
  DDPROF_HEAP_CPU = 2,     /* a tick of a CPU timer; size and interval are nanoseconds */
};

/* How a walk ended. */
enum ddprof_heap_end {
  DDPROF_HEAP_COMPLETE = 0,
  DDPROF_HEAP_TOO_DEEP = 1, /* more frames than a record has */
  DDPROF_HEAP_CUT = 2,      /* there was no rule, and no room for the stack */
};

struct ddprof_heap_record {
  uint8_t kind;
  uint8_t what;
  uint8_t end;
  uint8_t reserved;
  uint32_t payload; /* words behind this */
  uint32_t tid;
  uint32_t reserved_too;
  uint64_t time;
  uint64_t size;
  uint64_t interval;
  uint64_t address;
  uint64_t stack; /* hash of frames; of a raw record a number that is its own */
};

#define DDPROF_HEAP_RAW_REGISTERS 17U /* DWARF 0 to 15, and the pc */

/* --- The tables ------------------------------------------------------------------------------------------
 */

struct ddprof_heap_tables {
  uint64_t magic;
  uint32_t version;
  uint32_t rule_count;
  uint64_t first; /* of the list of tables; 0: there is none */
  uint64_t used;  /* bytes from here on are free */
  struct ddprof_unwind_rule rules[DDPROF_MAX_UNWIND_RULES];
};

/* One file's rows; see wire/unwind_table.h. Offsets count from the beginning of the tables. */
struct ddprof_heap_table {
  uint64_t base, size;
  uint32_t page_shift, page_count; /* pages has one more entry */
  uint32_t row_count, reserved;
  uint64_t pages, rows;
  uint64_t hash; /* of all of it, for the next worker */
  uint64_t next; /* in the list; 0: it is the last */
};

#define DDPROF_HEAP_TABLES_BYTES (256ULL << 20)

/* Hash of the frames of a stack: begin with this, fold each address in. */
#define DDPROF_HEAP_HASH_SEED 0x9e3779b97f4a7c15ULL
static inline uint64_t ddprof_heap_hash(uint64_t hash, uint64_t address) {
  hash = (hash ^ address) * 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

#ifdef __cplusplus
}
static_assert(sizeof(ddprof_heap_control) == 64 && sizeof(ddprof_heap_counters) == 64);
static_assert(sizeof(ddprof_heap_pace) == 64 && sizeof(ddprof_heap_record) == 56);
static_assert(__builtin_offsetof(ddprof_heap_slot, maps) == 4096);
static_assert(__builtin_offsetof(ddprof_heap_slot, ring) % 4096 == 0);
static_assert(__builtin_offsetof(ddprof_heap_slot, keys) % 4096 == 0 && sizeof(ddprof_heap_slot) % 4096 == 0);
#endif

#endif
