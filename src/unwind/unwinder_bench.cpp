// The cost of one sample: our unwinder and libdw's over the same recorded bytes of a 48-frame stack.
#include <benchmark/benchmark.h>

#include "unwind/unwinder_nest.hpp"
#include "unwind/unwinder_self_capture.hpp"

namespace ddprof {
namespace {

constexpr std::size_t kFrames = 48;

// A nest whose stack has exactly 48 frames, however many the benchmark's own callers are.
const SelfCapture& recorded_stack(SelfModules& modules) {
  static const SelfCapture captured = [&] {
    Unwinder unwinder(modules.rules, Architecture::x86_64);
    Stack stack;
    SelfCapture attempt;
    for (int depth = 0; depth < static_cast<int>(kFrames); ++depth) {
      nest::run(depth, [&] { capture(attempt); });
      unwinder.unwind(attempt.registers, attempt.copy(), modules.map, nullptr, nullptr, stack);
      if (stack.frames.size() >= kFrames) break;
    }
    return attempt;
  }();
  return captured;
}

void table_unwinder(benchmark::State& state) {
  SelfModules modules;
  const SelfCapture& captured = recorded_stack(modules);
  Unwinder unwinder(modules.rules, Architecture::x86_64);
  OuterFrames outer;
  Stack stack;
  for (auto _ : state) {
    unwinder.unwind(captured.registers, captured.copy(), modules.map, state.range(0) != 0 ? &outer : nullptr,
                    nullptr, stack);
    benchmark::DoNotOptimize(stack.frames.data());
  }
  if (stack.reason != StopReason::complete) state.SkipWithError("the stack is not complete");
  state.counters["frames"] = static_cast<double>(stack.frames.size());
}
BENCHMARK(table_unwinder)->ArgName("remembers_outer_frames")->Arg(0)->Arg(1);

// Every sample in another process, so that nothing is in the cache of rules.
void table_unwinder_without_cache(benchmark::State& state) {
  SelfModules modules;
  const SelfCapture& captured = recorded_stack(modules);
  Unwinder unwinder(modules.rules, Architecture::x86_64);
  Stack stack;
  for (auto _ : state) {
    modules.map.remove(Address{0}, Address{1});  // a new generation
    unwinder.unwind(captured.registers, captured.copy(), modules.map, nullptr, nullptr, stack);
    benchmark::DoNotOptimize(stack.frames.data());
  }
  state.counters["frames"] = static_cast<double>(stack.frames.size());
}
BENCHMARK(table_unwinder_without_cache);

void libdw(benchmark::State& state) {
  SelfModules modules;
  const SelfCapture& captured = recorded_stack(modules);
  DwflOracle oracle;
  std::size_t frames = 0;
  for (auto _ : state) frames = oracle.unwind(captured).size();
  state.counters["frames"] = static_cast<double>(frames);
}
BENCHMARK(libdw);

}  // namespace
}  // namespace ddprof
