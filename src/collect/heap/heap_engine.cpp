#include "collect/heap/heap_engine.hpp"

#include <algorithm>
#include <vector>

#include "collect/heap/heap_collector.hpp"
#include "collect/merged_collector.hpp"

namespace ddprof {

Result<std::unique_ptr<Collector>> HeapEngine::open(const Target& target,
                                                    const EngineOptions& options) const {
  std::vector<std::unique_ptr<Collector>> collectors;
  auto other = other_->open(target, options);
  const bool is_needed =
      std::any_of(options.events.begin(), options.events.end(),
                  [](const EventSpec& event) { return event.kind != EventSpec::Kind::allocation; });
  if (!other && is_needed) return std::move(other).error();
  auto heap = TRY(HeapCollector::open(target, options));
  if (!other) return std::unique_ptr<Collector>(std::move(heap));
  collectors.push_back(std::move(other).value());
  collectors.push_back(std::move(heap));
  return std::unique_ptr<Collector>(std::make_unique<MergedCollector>(std::move(collectors)));
}

}  // namespace ddprof
