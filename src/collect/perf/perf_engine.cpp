#include "collect/perf/perf_engine.hpp"

#include "collect/perf/perf_collector.hpp"

namespace ddprof {

Result<std::unique_ptr<Collector>> PerfEngine::open(const Target& target,
                                                    const EngineOptions& options) const {
  return std::unique_ptr<Collector>(TRY(PerfCollector::open(target, PerfOptions{options})));
}

Result<std::uint32_t> PerfEngine::automatic_stack_bytes(const std::vector<EventSpec>& events) const {
  return ddprof::automatic_stack_bytes(events);
}

}  // namespace ddprof
