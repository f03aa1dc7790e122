#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

enum class CheckState : std::uint8_t { ok, limited, missing };

[[nodiscard]] constexpr std::string_view state_name(CheckState state) {
  switch (state) {
    case CheckState::ok:
      return "ok";
    case CheckState::limited:
      return "limited";
    case CheckState::missing:
      break;
  }
  return "missing";
}

// What one check saw, what that means for profiling, and what would change it.
struct Finding {
  std::string name;  // the same in every version: programs look for it
  CheckState state = CheckState::ok;
  std::string fact;     // "kernel.perf_event_paranoid is 2"
  std::string meaning;  // one plain sentence without its full stop
  Cure cure = {};       // nothing in it when nothing needs a cure
};

}  // namespace ddprof
