// What a spool costs once a period, with as many requests as an outage of a day may leave when a few share
// it.
#include <benchmark/benchmark.h>

#include "base/scratch_fixture.hpp"
#include "export/spool.hpp"

namespace ddprof {
namespace {

constexpr int kRequests = 10'000;

Spool open_full(const ScratchFolder& folder) {
  auto spool = Spool::open(folder.path("spool"), {});
  for (int i = 0; i < kRequests; ++i)
    folder.write("spool/" + fmt::format("{:020}-00000000.parcel", i + 1), "some bytes");
  return std::move(spool).value();
}

void spool_state(benchmark::State& state) {
  const ScratchFolder folder;
  const Spool spool = open_full(folder);
  for (auto _ : state) benchmark::DoNotOptimize(spool.state().bytes);
}
BENCHMARK(spool_state)->Unit(benchmark::kMillisecond);

void spool_is_empty(benchmark::State& state) {
  const ScratchFolder folder;
  const Spool spool = open_full(folder);
  for (auto _ : state) benchmark::DoNotOptimize(spool.is_empty());
}
BENCHMARK(spool_is_empty)->Unit(benchmark::kMillisecond);

void spool_add(benchmark::State& state) {
  const ScratchFolder folder;
  Spool spool = open_full(folder);
  for (auto _ : state) benchmark::DoNotOptimize(spool.add(UploadRequest{}).ok());
}
BENCHMARK(spool_add)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ddprof
