#include "collect/engines/engine_table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collect/heap/heap_engine.hpp"
#include "collect/perf/perf_engine.hpp"
#include "collect/replay/replay_engine.hpp"

namespace ddprof {

namespace {

template <typename AnyEngine>
std::unique_ptr<Engine> make() {
  return std::make_unique<AnyEngine>();
}

constexpr auto kEngines = std::to_array<EngineRow>({
    {.name = "perf", .make = make<PerfEngine>},
    {.name = "replay", .make = make<ReplayEngine>, .is_hidden = true},
});

constexpr std::string_view kAutomatic = "auto";

}  // namespace

std::span<const EngineRow> engine_table() { return kEngines; }

std::string_view engine_choices() {
  static const std::string kChoices = [] {
    std::string words(kAutomatic);
    for (const EngineRow& row : kEngines)
      if (!row.is_hidden) words.append(" ").append(row.name);
    return words;
  }();
  return kChoices;
}

std::string_view hidden_engine_choices() {
  static const std::string kChoices = [] {
    std::string words;
    for (const EngineRow& row : kEngines)
      if (row.is_hidden) words.append(row.name).append(": ");
    return words;
  }();
  return kChoices;
}

Result<ChosenEngine> choose_engine(std::string_view choice, bool has_allocations) {
  const std::string_view name = choice.substr(0, choice.find(':'));
  const auto row = std::find_if(kEngines.begin(), kEngines.end(), [&](const EngineRow& known) {
    return choice == kAutomatic || known.name == name;
  });
  if (row == kEngines.end()) return make_error(ErrorCode::invalid_argument, "no engine is called {}", name);
  ChosenEngine chosen{row->make(), std::string(choice.substr(std::min(name.size() + 1, choice.size())))};
  if (has_allocations) chosen.engine = std::make_unique<HeapEngine>(std::move(chosen.engine));
  return chosen;
}

}  // namespace ddprof
