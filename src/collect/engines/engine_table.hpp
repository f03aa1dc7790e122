#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collect/engine.hpp"

namespace ddprof {

// The one list of engines, the best first. Nothing outside of their folders knows one by name.
struct EngineRow {
  std::string_view name;
  std::unique_ptr<Engine> (*make)();
  bool is_hidden = false;  // for tests and benchmarks; used as NAME:SOURCE
};
[[nodiscard]] std::span<const EngineRow> engine_table();

// What --engine takes, separated by spaces: auto and the engines; and how hidden ones begin.
[[nodiscard]] std::string_view engine_choices();
[[nodiscard]] std::string_view hidden_engine_choices();

struct ChosenEngine {
  std::unique_ptr<Engine> engine;
  std::string source;  // of NAME:SOURCE
};
// By what --engine was given. Allocations need a second one beside it.
[[nodiscard]] Result<ChosenEngine> choose_engine(std::string_view choice, bool has_allocations = false);

}  // namespace ddprof
