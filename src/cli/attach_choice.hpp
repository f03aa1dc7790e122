#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"
#include "process/process_search.hpp"

namespace ddprof {

// Whether what was typed behind -p and --container can be meant; which processes there are is not asked.
[[nodiscard]] Result<void> check_attach(const Options& options);
// The processes that are meant, as they are now.
[[nodiscard]] Result<AttachChoice> choose_processes(const Options& options, const ProcessSearch& search);
// "-p 12,34", as it was typed.
[[nodiscard]] std::string attach_text(const Options& options);

}  // namespace ddprof
