#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "session/continuity.hpp"

namespace ddprof {

// When profiles begin and end: back to back, or with pauses, as Datadog's Go profiler has them, which looks
// at the first part of every period (its window) and leaves the target alone for the rest.
class Cadence {
 public:
  enum class Step : std::uint8_t {
    none,
    close,   // a profile is complete, and the next one begins
    pause,   // a profile is complete, and nothing is sampled until it is time to resume
    resume,  // the next profile begins
  };

  // Without a period there is one profile, of the whole run. A window that fills its period is none.
  Cadence(std::optional<std::chrono::seconds> period, std::optional<std::chrono::seconds> window);

  // The first profile begins now.
  void begin(Nanoseconds now) { begin(now, now, std::nullopt); }
  // Goes on for another worker, which left the profile that begins, or will begin, at `start`.
  // `paused_since` is what the collector says.
  void begin(Nanoseconds start, Nanoseconds now, std::optional<Nanoseconds> paused_since);

  [[nodiscard]] Step due(Nanoseconds now) const;
  // When the next step is due; none: never.
  [[nodiscard]] std::optional<Nanoseconds> next() const;
  // Where the current profile began; in a pause, where the next one is to begin.
  [[nodiscard]] Nanoseconds start() const { return start_; }
  // Where the profile after this one begins, if this one ends at `end`.
  [[nodiscard]] Nanoseconds start_after(Nanoseconds end) const;
  [[nodiscard]] bool has_pauses() const { return window_.has_value(); }
  [[nodiscard]] bool is_paused() const { return is_paused_; }

  // What was done: the profile ended there, and a pause was made, if there are any; or sampling goes on.
  void closed(Nanoseconds end);
  void resumed(Nanoseconds now);

 private:
  std::optional<Nanoseconds> period_;
  std::optional<Nanoseconds> window_;
  Nanoseconds start_{};
  bool is_paused_ = false;
};

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

// How often to look at the collector. While tasks come and go, often: a fork storm has to be noticed while it
// rages, and files of a short process while it lives. Samples alone can wait, and an idle target is left
// alone.
class Pace {
 public:
  void begin(Nanoseconds now) { began_ = now; }
  // One more event, and that there are no more for now.
  void count(bool is_sample) { ++(is_sample ? new_samples_ : new_others_); }
  void update();
  [[nodiscard]] std::chrono::milliseconds wait(Nanoseconds now) const;

 private:
  Nanoseconds began_{};
  std::chrono::milliseconds pace_{1};
  std::uint64_t samples_ = 0;
  std::uint64_t new_samples_ = 0, new_others_ = 0;
};

}  // namespace ddprof
