/* The compact unwind table: what .eh_frame becomes. Plain C, no dependency: the compiler (src/unwind) writes
 * these bytes, the user-space executor reads them, and a BPF program will read the very same ones. */
/* clang-format off */
/*   pages[i]          index of the first row of page i, which covers ELF addresses
 *                     [base + (i << page_shift), base + ((i + 1) << page_shift)); pages[page_count] ends the
 *                     last one
 *   rows[n]           sorted inside a page by pc_low; the first row of every page has pc_low 0 (the governing
 *                     row is repeated), so that a look-up never leaves its page
 *   rules[row.rule]   from one dictionary shared by all tables of this process
 */
/* clang-format on */
/* Look-up: page = (pc - base) >> page_shift; low = (pc - base) & mask; last row of the page with pc_low <=
 * low. */
#ifndef DDPROF_WIRE_UNWIND_TABLE_H
#define DDPROF_WIRE_UNWIND_TABLE_H

#include <stdint.h>  // NOLINT: shared with C

#ifdef __cplusplus
extern "C" {
#endif

struct ddprof_unwind_row {
  uint16_t pc_low; /* offset in the page; page_shift <= 16 */
  uint16_t rule;   /* index into the dictionary */
};

/* Words have 8 bytes, in the tables of i386 files 4: there the return address is at CFA - 4, and so on.
 *
 * Where the canonical frame address is. Values from DDPROF_CFA_REGISTER on name a DWARF register whose value
 * is known only in the leaf frame: CFA = register (cfa - DDPROF_CFA_REGISTER) + cfa_offset. */
enum ddprof_cfa {
  DDPROF_CFA_GAP = 0,      /* no CFI covers this address: try the frame pointer */
  DDPROF_CFA_SP = 1,       /* sp + cfa_offset */
  DDPROF_CFA_FP = 2,       /* fp + cfa_offset */
  DDPROF_CFA_DEREF_SP = 3, /* *(sp + low half of cfa_offset) + high half, both signed 16 bit */
  DDPROF_CFA_DEREF_FP = 4, /* *(fp + low half of cfa_offset) + high half */
  DDPROF_CFA_PLT = 5,      /* sp + 8 + ((pc & 15) >= cfa_offset ? 8 : 0), the lazy-binding stub of x86-64 */
  DDPROF_CFA_SIGNAL_FRAME = 6, /* the sigreturn stub: all registers are in the ucontext that sp points to */
  DDPROF_CFA_END = 7,          /* return address undefined: the root of the thread */
  DDPROF_CFA_UNSUPPORTED = 8,  /* CFI that this table cannot express */
  DDPROF_CFA_GO_SWITCH = 9, /* Go's runtime has called on from its system stack, for a goroutine whose frame
                               fp still points to */
  DDPROF_CFA_REGISTER = 32,
};

/* Where the caller's frame pointer is (low four bits of fp_ra). */
enum ddprof_fp {
  DDPROF_FP_SAME = 0,   /* unchanged */
  DDPROF_FP_AT_CFA = 1, /* at CFA + fp_offset */
  DDPROF_FP_AT_FP = 2,  /* at current fp + fp_offset (realigned, DRAP frames) */
};

/* Where the return address is (high four bits of fp_ra, shifted). */
enum ddprof_ra {
  DDPROF_RA_AT_CFA_MINUS_8 = 0,   /* x86-64 */
  DDPROF_RA_IN_LINK_REGISTER = 1, /* aarch64: still in x30; believable in the leaf only */
  DDPROF_RA_AFTER_FP = 2,         /* aarch64: at CFA + fp_offset + 8, beside the saved x29 */
  DDPROF_RA_AT_FP_OFFSET = 3,     /* at CFA + fp_offset; fp unchanged */
  DDPROF_RA_IN_REGISTER = 4,      /* in DWARF register fp_offset (vfork pops its return address); leaf only */
};

struct ddprof_unwind_rule {
  uint8_t cfa;   /* enum ddprof_cfa */
  uint8_t fp_ra; /* enum ddprof_fp | enum ddprof_ra << 4 */
  int16_t fp_offset;
  int32_t cfa_offset;
};

#define DDPROF_MAX_UNWIND_RULES 16384

#ifdef __cplusplus
}
static_assert(sizeof(ddprof_unwind_row) == 4 && sizeof(ddprof_unwind_rule) == 8);
#endif

#endif
