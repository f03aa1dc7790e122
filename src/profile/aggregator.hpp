#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/frame.hpp"
#include "base/ids.hpp"
#include "profile/dense_index.hpp"

namespace ddprof {

// What a thread was doing when it was sampled, by its own account: the trace and span that it worked for.
struct SampleContext {
  std::array<std::uint8_t, 16> trace_id{};  // in the order of W3C; all zeroes: none
  std::uint64_t span_id = 0;
  std::optional<std::uint64_t> local_root_span_id;
  std::string endpoint;
  std::vector<std::pair<std::string, std::string>> others;  // keys and texts

  friend bool operator==(const SampleContext&, const SampleContext&) = default;
};

std::uint64_t hash_of(const SampleContext& context);
// 32 lowercase digits; empty when there is no trace.
std::string trace_id_text(const SampleContext& context);

struct ThreadKey {
  Pid pid{};
  Tid tid{};
  std::uint32_t incarnation = 0;  // how many programs this process has been before: exec changes all names

  friend auto operator<=>(const ThreadKey&, const ThreadKey&) = default;
};

// A value column of the profile: {"samples", "count"}, {"cpu", "nanoseconds"}.
struct Column {
  std::string type;
  std::string unit;
};

// What one sample adds to one column.
struct ColumnValue {
  std::uint32_t column = 0;
  std::int64_t value = 0;
};

// Frames, stacks and sums of one period: everything is an index into something above it.
struct AggregatedProfile {
  struct Stack {
    std::uint32_t begin = 0;  // into frame_indices
    std::uint32_t count = 0;
  };
  struct Sample {
    std::uint32_t stack = 0;    // into stacks
    std::uint32_t thread = 0;   // into threads
    std::uint32_t context = 0;  // one more than the index into contexts; 0: none

    friend bool operator==(const Sample&, const Sample&) = default;
  };

  // When one of the events of a sample happened.
  struct Moment {
    std::uint32_t sample = 0;  // into samples
    Nanoseconds time{};        // CLOCK_MONOTONIC
  };

  Nanoseconds start{};  // CLOCK_MONOTONIC, as given to take()
  Nanoseconds end{};
  std::vector<Column> columns;
  std::vector<Frame> frames;                 // distinct
  std::vector<std::uint32_t> frame_indices;  // of all stacks, one after the other, leaf first
  std::vector<Stack> stacks;                 // distinct
  std::vector<ThreadKey> threads;            // distinct
  std::vector<SampleContext> contexts;       // distinct
  std::vector<Sample> samples;               // distinct
  std::vector<std::int64_t> values;          // columns.size() per sample
  std::vector<Moment> moments;               // in the order in which they were added; empty unless asked for
  std::uint64_t over_budget = 0;             // additions whose stack or thread was folded into a marker
  std::uint64_t contexts_over_budget = 0;    // additions without the context that they had

  [[nodiscard]] std::span<const std::uint32_t> stack(std::uint32_t index) const {
    return std::span(frame_indices).subspan(stacks[index].begin, stacks[index].count);
  }
  [[nodiscard]] std::span<const std::int64_t> sample_values(std::size_t sample) const {
    return std::span(values).subspan(sample * columns.size(), columns.size());
  }
};

// The same with `frames` in the place of its frames. What becomes equal by that is added up.
[[nodiscard]] AggregatedProfile with_frames(const AggregatedProfile& profile, std::span<const Frame> frames);

// What an aggregator may keep during one period. Beyond it values still count, under a frame that says so
// (Loss::too_many_stacks), so totals stay exact.
struct AggregatorBudget {
  std::uint32_t stacks = 200'000;
  std::uint32_t distinct_frames = 2'000'000;
  std::uint32_t stored_frames = 16'000'000;  // over all stacks, 4 bytes each
  std::uint32_t threads = 1'000'000;         // beyond: ThreadKey{0, 0}
  std::uint32_t contexts = 50'000;           // beyond: samples have none
  std::uint32_t samples = 2'000'000;         // distinct by stack, thread and context
  std::uint32_t moments = 1'000'000;         // beyond: samples count, but have no time of their own

  // For a process that may use so many bytes (0: any): naming and encoding a period takes several times the
  // memory of collecting it.
  static AggregatorBudget within(std::uint64_t memory);
};

// Sums samples by stack, thread and context. A stack that was seen before costs one hash, one comparison and
// no allocation.
class Aggregator {
 public:
  explicit Aggregator(std::vector<Column> columns, AggregatorBudget budget = {});

  // Adds `values` to the columns they name; `frames` is leaf first. Values of unknown columns are ignored.
  // Returns which sample it was added to. `context` may be null.
  std::uint32_t add(ThreadKey thread, std::span<const Frame> frames, std::span<const ColumnValue> values,
                    const SampleContext* context = nullptr);
  std::uint32_t add(ThreadKey thread, std::span<const Frame> frames,
                    std::initializer_list<ColumnValue> values, const SampleContext* context = nullptr) {
    return add(thread, frames, std::span(values.begin(), values.size()), context);
  }
  // Remembers when it was.
  void add_moment(std::uint32_t sample, Nanoseconds time);

  // Closes the period: hands everything over and starts again empty.
  AggregatedProfile take(Nanoseconds start, Nanoseconds end);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] std::size_t stacks() const { return period_.stacks.size(); }
  [[nodiscard]] std::uint64_t over_budget() const { return period_.over_budget; }
  [[nodiscard]] std::uint64_t contexts_over_budget() const { return period_.contexts_over_budget; }

 private:
  std::uint32_t intern_frame(const Frame& frame);
  std::uint32_t intern_stack(std::span<const Frame> frames);
  std::uint32_t append_stack(std::uint64_t hash, std::span<const Frame> frames);
  std::uint32_t intern_thread(ThreadKey thread);
  std::uint32_t intern_context(const SampleContext* context);
  std::uint32_t intern_sample(AggregatedProfile::Sample sample);
  std::uint32_t overflow_stack();
  std::uint32_t overflow_thread();
  [[nodiscard]] bool has_room_for(std::span<const Frame> frames) const;
  [[nodiscard]] bool is_stack(std::uint32_t stack, std::span<const Frame> frames) const;

  std::vector<Column> columns_;
  AggregatorBudget budget_;
  AggregatedProfile period_;
  DenseIndex frame_index_, stack_index_, thread_index_, context_index_, sample_index_;
};

}  // namespace ddprof
