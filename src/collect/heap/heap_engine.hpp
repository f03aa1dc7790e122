#pragma once

#include <memory>
#include <utility>

#include "collect/engine.hpp"

namespace ddprof {

// Samples allocations by a library in the target, and everything else, and what tasks do, by another engine.
// Where that one is refused, allocations are sampled all the same.
class HeapEngine final : public Engine {
 public:
  explicit HeapEngine(std::unique_ptr<Engine> other) : other_(std::move(other)) {}

  Result<std::unique_ptr<Collector>> open(const Target& target, const EngineOptions& options) const override;
  [[nodiscard]] Result<std::uint32_t> automatic_stack_bytes(
      const std::vector<EventSpec>& events) const override {
    return other_->automatic_stack_bytes(events);
  }
  [[nodiscard]] EngineAccount examine() const override { return other_->examine(); }

 private:
  std::unique_ptr<Engine> other_;
};

}  // namespace ddprof
