#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "collect/finding.hpp"
#include "collect/target.hpp"

namespace ddprof {

// What the user decided, for any engine.
struct EngineOptions {
  std::vector<EventSpec> events;
  std::uint32_t stack_bytes = 0;  // per sample, unless the event says otherwise; 0: as the engine chooses
  bool has_pauses = false;        // Pausable::pause() will be called
  std::string source;             // what follows the colon of --engine NAME:SOURCE
  std::string library;            // path of libddprof.so, where it may be put into the target
  std::uint64_t max_alloc_samples = 2'000;  // a second and process
};

// What an engine says of this machine and of what this process may do, for `ddprof doctor`.
struct EngineAccount {
  std::vector<Finding> works;     // whether it works, and how far
  std::vector<Finding> decides;   // who decides that
  std::vector<Finding> names;     // what has names
  std::vector<Finding> improves;  // what makes profiles better
  std::vector<Ability> abilities;
  bool can_profile = true;  // at all
};

// A way to collect samples. It holds nothing: what it opens is a collector.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual Result<std::unique_ptr<Collector>> open(const Target& target,
                                                  const EngineOptions& options) const = 0;
  // How much stack is copied with each sample of these events, on this machine, where nothing is chosen.
  [[nodiscard]] virtual Result<std::uint32_t> automatic_stack_bytes(
      const std::vector<EventSpec>& events) const = 0;
  // Tries what it needs, and changes nothing.
  [[nodiscard]] virtual EngineAccount examine() const { return {}; }
};

}  // namespace ddprof
