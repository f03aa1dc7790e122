#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "unwind/stack_case.hpp"

namespace ddprof {

// The text of a case, one fact per line; '#' starts a comment. case.txt holds everything but the stack's
// bytes and what belongs to one module, whose rows and code are in a text of their own.
//
//   architecture x86_64                        row 0x1130-0x1150 cfa=sp cfa_offset=16 fp=cfa ra=cfa-8
//   fp_offset=-16 register sp 0x7ffe0010                     code 0x1140 e8 1b 00 00 00 stack 0x7ffe0010
//   whole module 0x5500000000 0x5500001000 0x5500000000 - program frame program+0x1140 reason complete

[[nodiscard]] std::string format_stack_case(const StackCase& stack_case);
[[nodiscard]] std::string format_stack_case_module(const StackCaseModule& module);

[[nodiscard]] Result<StackCase> parse_stack_case(std::string_view text);
[[nodiscard]] Result<void> parse_stack_case_module(std::string_view text, StackCaseModule& module);

}  // namespace ddprof
