#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"

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

}  // namespace ddprof
