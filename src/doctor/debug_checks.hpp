#pragma once

#include <chrono>

#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "debugfile/debuginfod_settings.hpp"

namespace ddprof {

inline constexpr std::chrono::milliseconds kDebuginfodPatience{2000};

// Where lines and inlined calls of stripped files can come from.
Finding check_debug_files(const Machine& machine);
Finding check_debuginfod(const std::optional<DebuginfodSettings>& settings,
                         std::chrono::milliseconds patience = kDebuginfodPatience);

}  // namespace ddprof
