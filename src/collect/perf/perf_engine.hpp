#pragma once

#include "collect/engine.hpp"

namespace ddprof {

// Samples with perf_event_open: works without privilege where kernel.perf_event_paranoid is 2 or less.
class PerfEngine final : public Engine {
 public:
  Result<std::unique_ptr<Collector>> open(const Target& target, const EngineOptions& options) const override;
  [[nodiscard]] Result<std::uint32_t> automatic_stack_bytes(
      const std::vector<EventSpec>& events) const override;
  [[nodiscard]] EngineAccount examine() const override;
};

}  // namespace ddprof
