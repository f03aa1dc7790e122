#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "encode/compression.hpp"
#include "encode/datadog_profile.hpp"
#include "encode/otlp.hpp"
#include "encode/pprof.hpp"
#include "profile/dense_index.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

// How long the encoders take for 100,000 different stacks of 40 frames, and how much memory beyond the
// profile itself they have at most, their result included. The goal: less than three times the result.

namespace {

struct Heap {
  std::size_t bytes = 0, peak = 0;
};
Heap heap;  // one thread measures

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  heap.bytes += malloc_usable_size(block);
  heap.peak = std::max(heap.peak, heap.bytes);
  return block;
}
void operator delete(void* block) noexcept {
  heap.bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace ddprof {
namespace {

constexpr std::uint32_t kStacks = 100'000, kFrames = 40, kThreads = 64;
constexpr std::int64_t kPeriod = 10'101'010;                       // 99 Hz
constexpr std::uint32_t kManyPerLevel = 500, kUsualPerLevel = 50;  // locations

// Four locations to a function, each level of the stacks with locations of its own.
void add_locations(ProfileBuilder& builder, std::uint32_t mapping, std::uint32_t per_level) {
  for (std::uint32_t location = 0; location < kFrames * per_level; ++location) {
    const std::uint32_t function = builder.add_function(
        "space::Class::function_" + std::to_string(location / 4) + "(int, std::string const&)",
        "_ZN5space5Class8function" + std::to_string(location / 4),
        "src/file_" + std::to_string(location / 64));
    const ProfileLine line{function, location % 1000};
    builder.add_location(mapping, {0x400000 + std::uint64_t{location} * 32}, std::span(&line, 1));
  }
}

// The same callees follow a caller, so that stacks share their beginnings as those of programs do.
std::vector<std::uint32_t> make_stack(std::uint64_t random, std::uint32_t per_level) {
  std::vector<std::uint32_t> stack(kFrames);
  std::uint32_t at = 0;
  for (std::uint32_t level = 0; level < kFrames; ++level) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    at = (at * 7 + static_cast<std::uint32_t>(random >> 62U)) % per_level;
    stack[kFrames - 1 - level] = level * per_level + at;
  }
  return stack;
}

void begin_profile(ProfileBuilder& builder, std::uint32_t per_level) {
  Profile& profile = builder.profile();
  profile.value_types = {builder.value_type("samples", "count"), builder.value_type("cpu", "nanoseconds")};
  profile.period_type = profile.value_types[1];
  profile.period = kPeriod;
  profile.time_ns = 1'700'000'000'000'000'000;
  add_locations(
      builder,
      builder.add_mapping({.start = {0x400000}, .limit = {0x4000000}, .path = builder.intern("/app")}),
      per_level);
}

Profile make_profile(bool has_times) {
  ProfileBuilder builder;
  begin_profile(builder, kManyPerLevel);
  const Profile& profile = builder.profile();
  for (std::uint32_t index = 0; index < kStacks; ++index) {
    ProfileSample sample{make_stack(index, kManyPerLevel), {1, 10'000'000 + index % 100}, {}};
    sample.labels = {builder.number_label(kThreadIdLabel, 1000 + index % kThreads),
                     builder.text_label(kThreadNameLabel, "worker-" + std::to_string(index % 8)),
                     builder.number_label(kProcessIdLabel, 1000),
                     builder.text_label(kProcessNameLabel, "server")};
    if (has_times) {
      sample.labels.push_back(builder.number_label(
          kEndTimestampLabel, profile.time_ns + 1'000'000 * std::int64_t{index}, "nanoseconds"));
    }
    builder.add_sample(std::move(sample));
  }
  return std::move(builder).build();
}

// A minute of 16 threads that are always busy, all at the same 40 stacks as those of a pool are, sampled at
// 99 Hz with a timeline: 95,040 samples, ordered as the profiler orders them, by thread and stack.
Profile make_busy_minute() {
  constexpr std::int64_t kBusyThreads = 16, kStacksOfThread = 40, kSamplesOfThread = 99 * 60;
  ProfileBuilder builder;
  begin_profile(builder, kUsualPerLevel);
  for (std::int64_t index = 0; index < kBusyThreads * kStacksOfThread; ++index) {
    const std::int64_t thread = index / kStacksOfThread, turn = index % kStacksOfThread;
    ProfileSample sample{.locations = make_stack(static_cast<std::uint64_t>(turn), kUsualPerLevel)};
    sample.labels = {
        builder.number_label(kThreadIdLabel, 1000 + thread), builder.text_label(kThreadNameLabel, "worker"),
        builder.number_label(kProcessIdLabel, 1000), builder.text_label(kProcessNameLabel, "server")};
    for (std::int64_t tick = 0; tick < kSamplesOfThread; ++tick) {
      const std::uint64_t random =
          hash_mix(static_cast<std::uint64_t>(thread), static_cast<std::uint64_t>(tick));
      if (static_cast<std::int64_t>(random % kStacksOfThread) != turn) continue;
      const auto jitter = static_cast<std::int64_t>(random >> 44U);  // up to a millisecond: timers are late
      sample.times.push_back(builder.profile().time_ns + tick * kPeriod + jitter);
    }
    sample.events = static_cast<std::uint32_t>(sample.times.size());
    sample.values = {sample.events, sample.events * kPeriod};
    builder.add_sample(std::move(sample));
  }
  builder.profile().time_label = builder.number_label(kEndTimestampLabel, 0, "nanoseconds");
  return std::move(builder).build();
}

template <typename Encode>
void measure(benchmark::State& state, const Profile& profile, Encode&& encode) {
  std::size_t size = 0, peak = 0;
  for (auto _ : state) {
    const std::size_t before = heap.peak = heap.bytes;
    const std::string bytes = encode(profile);
    size = bytes.size();
    peak = heap.peak - before;
  }
  state.counters["bytes"] = static_cast<double>(size);
  state.counters["peak_per_byte"] = static_cast<double>(peak) / static_cast<double>(size);
}

void pprof(benchmark::State& state) {
  measure(state, make_profile(state.range(0) != 0),
          [](const Profile& profile) { return encode_pprof(profile); });
}
BENCHMARK(pprof)->ArgName("times")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void otlp(benchmark::State& state) {
  measure(state, make_profile(state.range(0) != 0),
          [](const Profile& profile) { return encode_otlp(profile, {}); });
}
BENCHMARK(otlp)->ArgName("times")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void busy_minute(benchmark::State& state) {
  constexpr int kFastest = 1;
  measure(state, make_busy_minute(),
          [](const Profile& profile) { return zstd(encode_for_datadog(profile), kFastest).value_or(""); });
}
BENCHMARK(busy_minute)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ddprof
