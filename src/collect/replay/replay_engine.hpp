#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collect/engine.hpp"
#include "collect/replay/event_file.hpp"

namespace ddprof {

// Plays a recording back (record_events makes one), a call of collect() for each that was recorded: whole
// runs of the pipeline without a kernel, the same every time.
class ReplayCollector final : public Collector {
 public:
  // `events`: how many kinds of events the session knows; records of others are dropped and counted.
  static Result<std::unique_ptr<ReplayCollector>> open(std::string recording, std::size_t events);

  Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) override;
  Result<void> drain(const EventHandler& handle) override;
  std::optional<std::int64_t> exact_total(std::uint32_t event) override;
  bool is_finished() override { return reader_->is_at_end(); }
  [[nodiscard]] CollectorCounters counters() const override { return counters_; }
  [[nodiscard]] std::string describe() const override { return "a recording that is played back"; }
  [[nodiscard]] std::vector<std::string> notices() const override { return {}; }

 private:
  ReplayCollector(std::string recording, std::size_t events)
      : recording_(std::move(recording)), totals_(events) {}

  void play(const CollectorEvent& event, const EventHandler& handle);

  std::string recording_;
  std::optional<EventFileReader> reader_;  // of recording_
  std::vector<std::optional<std::int64_t>> totals_;
  CollectorCounters counters_;
};

class ReplayEngine final : public Engine {
 public:
  // The source is the file. The target was chosen when it was recorded.
  Result<std::unique_ptr<Collector>> open(const Target& target, const EngineOptions& options) const override;
  [[nodiscard]] Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>&) const override {
    return make_error(ErrorCode::unsupported, "what is played back has its stacks already");
  }
};

}  // namespace ddprof
