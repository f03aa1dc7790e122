#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/control.h"

namespace ddprof {

// The program that has started us by libddprof.so, to profile itself: what it wants, and what it is told. See
// wire/control.h. The descriptors are borrowed.
class Control {
 public:
  Control(int commands, int answers) : commands_(commands), answers_(answers) {}

  // We were started in the middle of that program: leaves its session, its signals and its descriptors.
  static void leave_program();

  // `arena` is empty where no allocations are sampled.
  void say_ready(std::string_view arena, const std::vector<std::string>& notices) const;
  void say(ddprof_control_answer answer, std::string_view text = {}) const;

  // The next command. None: there is none yet. A program that is gone, or has become another one, wants us to
  // stop.
  [[nodiscard]] std::optional<ddprof_control_command> take() const;
  [[nodiscard]] int descriptor() const { return commands_; }

 private:
  void send(std::string packet) const;

  int commands_, answers_;
};

}  // namespace ddprof
