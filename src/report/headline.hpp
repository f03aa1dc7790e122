#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/own_code.hpp"
#include "report/view.hpp"

namespace ddprof {

// The answer in one sentence: which function of the program's own code pays for most of the cost.
//
// A sample is paid for by the innermost own frame of its stack, so that libraries and the kernel count for
// who calls them; without an own frame, by the innermost frame that is not of the kernel. Payers add up to
// what has a stack.

struct Payer {
  std::string name;    // of the function; of the module where it has no names
  std::string module;  // base name of its file
  std::string file;    // of its most expensive line; empty: unknown
  std::int64_t line = 0;
  std::int64_t value = 0;
  bool is_own = false;
  bool is_unnamed = false;  // the module has no symbols
  // The nearest own function above, where one makes most of the calls; how much of `value` it has.
  std::string caller;
  std::int64_t caller_value = 0;
  // What of another module it spends most of its time in, if there is such a function.
  std::string callee, callee_module;
};

struct Headline {
  enum class Kind : std::uint8_t {
    nothing,      // no samples, or none with a stack, or a difference of two profiles
    one,          // one function stands out
    several,      // two or three have half of it
    spread,       // none does
    kernel,       // most is spent in the kernel
    library,      // most is spent outside of own code
    interpreter,  // likewise, and it is an interpreter
  };

  Kind kind = Kind::nothing;
  std::string noun;           // "CPU", "page faults", "1.2 GiB live"
  std::string verb = "in";    // between a share and who has it
  std::string growth;         // ", growing 3 MiB/min"; empty: not known
  std::int64_t whole = 0;     // what shares are of
  std::int64_t samples = 0;   // how many that rests on; 0: not known
  std::vector<Payer> payers;  // the greatest, in order
  std::size_t payer_count = 0;
  // The process that is meant when there are several, and what all of them have: `whole` is that process's
  // part.
  std::string process;
  std::int64_t all_processes = 0;
  // Kind::kernel: how much, and the system call (or "page faults") that has most of it.
  std::int64_t kernel_value = 0;
  std::string system_call;
  std::int64_t system_call_value = 0;
  // Kind::library and interpreter: the module that has most of it.
  std::string module;
  std::int64_t module_value = 0;
  // Kind::spread: an own function below which most of it is.
  std::string under;
  std::int64_t under_value = 0;
  // What has no stack or not all of it, and its greatest reason: "truncated: no unwind info in libfoo.so".
  std::int64_t missed = 0;
  std::string missed_reason;
};

inline constexpr std::size_t kHeadlinePayers = 5;

// Of the samples that the view selects.
Headline headline_of(const ReportView& view, const OwnCode& own, std::size_t payers = kHeadlinePayers);

// For each process by its name, the most expensive first; one for all when one process has nearly everything.
std::vector<Headline> headlines_of(const ReportView& view, const OwnCode& own,
                                   std::size_t processes = kHeadlinePayers);

// "89 % of CPU in shop::is_blocked (shop.cpp:56), called by shop::serve". Names go through `short_name`.
using ShortName = std::function<std::string(std::string_view)>;
std::string headline_text(const Headline& headline, const ShortName& short_name);

// "CPU" for "cpu", "page faults" for "page-faults", "1.2 GiB live" for "inuse_space".
std::string noun_of_type(std::string_view type, std::int64_t whole, std::string_view unit);

// "89 %", "0.4 %"
std::string round_percent(std::int64_t part, std::int64_t whole);

}  // namespace ddprof
