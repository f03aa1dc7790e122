#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprof {

// What would make something work that does not.
struct Hint {
  std::string command;     // on the machine itself
  std::string docker;      // options of `docker run`
  std::string kubernetes;  // fields of the container or pod
};

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
  std::string fact;     // "kernel.kptr_restrict is 1"
  std::string meaning;  // one plain sentence without its full stop
  Hint hint = {};       // empty when nothing is to be done
};

// One thing that people want of a profiler, and how far it works here.
struct Ability {
  std::string name;  // the same in every version
  CheckState state = CheckState::ok;
  std::string title;    // "processes of other users"
  std::string meaning;  // how to have it, how far it goes, or why not
  Hint hint = {};
};
inline constexpr std::string_view kWholeHostAbility = "whole-host";

}  // namespace ddprof
