#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "profile/split.hpp"

namespace ddprof {
namespace {

// Stacks of 40 frames: leaves are a service's own, roots are everybody's.
Profile profile_of_services(std::uint32_t services, std::uint32_t samples) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  for (std::uint32_t i = 0; i < samples; ++i) {
    const std::uint32_t service = i % services;
    ProfileSample sample;
    for (std::uint32_t depth = 0; depth < 40; ++depth) {
      const std::string name = depth < 20
                                   ? fmt::format("service_{}_call_{}_{}", service, depth, i / services % 20)
                                   : fmt::format("everybody_calls_{}", depth);
      sample.locations.push_back(builder.add_named_location(name));
    }
    sample.values = {1, 10'101'010};
    sample.process = service;
    sample.labels = {builder.number_label(kProcessIdLabel, 100 + service),
                     builder.number_label(kThreadIdLabel, 100 + i % (services * 4)),
                     builder.text_label(kServiceLabel, fmt::format("service_{}", service)),
                     builder.text_label(kContainerIdLabel, fmt::format("container_{}", service))};
    builder.add_sample(std::move(sample));
  }
  return std::move(builder).build();
}

// The goal: a few milliseconds for 50 services and 5,000 samples.
void cut_profile(benchmark::State& state) {
  const auto services = static_cast<std::uint32_t>(state.range(0));
  const Profile profile = profile_of_services(services, static_cast<std::uint32_t>(state.range(1)));
  for (auto _ : state) {
    std::vector<std::uint32_t> shares;
    for (const ProfileSample& sample : profile.samples) shares.push_back(sample.process);
    ProfileCutter cutter(profile, shares, services);
    for (std::size_t share = 0; share < services; ++share) benchmark::DoNotOptimize(cutter.cut(share, false));
  }
}
BENCHMARK(cut_profile)->Args({1, 5000})->Args({50, 5000})->Args({50, 50000})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ddprof
