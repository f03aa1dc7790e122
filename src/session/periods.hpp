#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "session/cadence.hpp"
#include "session/continuity.hpp"

namespace ddprof {

struct PeriodOptions {
  std::optional<std::chrono::seconds> length;  // close a profile this often; none: one for the whole run
  // Only so much of every period is sampled, from its beginning; none: all of it. The collector was opened
  // with pauses.
  std::optional<std::chrono::seconds> window;
  std::optional<std::chrono::seconds> duration;  // of the run; none: until the target ends
  std::uint64_t per_worker = 0;                  // then another worker is asked for; 0: never
};

// Where one period lies.
struct PeriodTimes {
  std::uint64_t sequence = 0;
  Nanoseconds start{}, end{}, unix_start{};
};

// The periods of a run, which go on from worker to worker without a gap: their numbers and their times.
class Periods {
 public:
  Periods(const PeriodOptions& options, const Clock& clock)
      : options_(options), clock_(clock), cadence_(options.length, options.window) {}

  // The run begins, or goes on where an earlier worker left it. `paused_since` is what the collector says.
  void begin(const SessionHandover& earlier, Nanoseconds now, std::optional<Nanoseconds> paused_since);
  [[nodiscard]] bool is_first_worker() const { return is_first_worker_; }
  [[nodiscard]] Nanoseconds started() const { return started_; }  // the run

  [[nodiscard]] Cadence::Step due(Nanoseconds now) const { return cadence_.due(now); }
  [[nodiscard]] bool is_run_over(Nanoseconds now) const {
    return options_.duration && now - started_ >= *options_.duration;
  }
  // When there is something to do; none: never.
  [[nodiscard]] std::optional<Nanoseconds> next() const;
  [[nodiscard]] bool has_pauses() const { return cadence_.has_pauses(); }
  [[nodiscard]] bool is_paused() const { return cadence_.is_paused(); }
  [[nodiscard]] const PeriodOptions& options() const { return options_; }
  [[nodiscard]] Nanoseconds start() const { return cadence_.start(); }  // of the current one

  // The current period ends here, and the next one begins, at once or after a pause.
  PeriodTimes close(Nanoseconds end);
  void resumed(Nanoseconds now) { cadence_.resumed(now); }
  // This worker has closed as many as it should.
  [[nodiscard]] bool is_worker_over() const {
    return options_.per_worker > 0 && closed_ >= options_.per_worker;
  }

  // For a worker that goes on after the last period that was closed.
  void hand_over(SessionHandover& handover) const;

 private:
  Nanoseconds unix_offset();

  PeriodOptions options_;
  const Clock& clock_;
  Cadence cadence_;
  Nanoseconds started_{};
  Nanoseconds unix_offset_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t closed_ = 0;  // by this worker
  bool is_first_worker_ = true;
};

}  // namespace ddprof
