#pragma once

#include "base/registers.hpp"
#include "unwind/cfi_reader.hpp"
#include "wire/unwind_table.h"

namespace ddprof {

// One row of CFI as a compact rule: exact, or DDPROF_CFA_UNSUPPORTED.
[[nodiscard]] ddprof_unwind_rule to_unwind_rule(const CfiState& state, const Cie& cie,
                                                Architecture architecture);

}  // namespace ddprof
