#pragma once

#include <array>
#include <utility>

#include "profile/labels.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof::testing_data {

// main -> work (with an inlined call to add) and main -> sleep, in two threads; 3 s of CPU time in 300
// samples.
inline Profile sample_profile() {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.value_types = {builder.value_type("samples", "count"), builder.value_type("cpu", "nanoseconds")};
  profile.default_value_type = builder.intern("cpu");
  profile.period_type = builder.value_type("cpu", "nanoseconds");
  profile.period = 10'000'000;
  profile.time_ns = 1'700'000'000'000'000'000;
  profile.duration_ns = 4'000'000'000;
  profile.comments = {builder.intern("a comment")};

  const std::uint32_t app = builder.add_mapping({.start = {0x400000},
                                                 .limit = {0x402000},
                                                 .file_offset = 0x1000,
                                                 .path = builder.intern("/usr/bin/app"),
                                                 .build_id = builder.intern("0123abcd"),
                                                 .has_functions = true,
                                                 .has_filenames = true,
                                                 .has_lines = true,
                                                 .has_inlines = true});
  const std::uint32_t libc = builder.add_mapping(
      {.start = {0x7f0000}, .limit = {0x7f8000}, .path = builder.intern("/lib/libc.so.6")});
  const std::uint32_t main_function = builder.add_function("main", "main", "app.cc", 30);
  const std::array<ProfileLine, 1> main_line{{{main_function, 34}}};
  const std::array<ProfileLine, 2> work_lines{
      {{builder.add_function("add(int; int)", "_Z3addii", "app.cc", 1), 2},
       {builder.add_function("work()", "_Z4workv", "app.cc", 10), 12}}};
  const std::uint32_t work = builder.add_location(app, {0x400123}, work_lines);
  const std::uint32_t root = builder.add_location(app, {0x400456}, main_line);
  const std::uint32_t unnamed = builder.add_location(libc, {0x7f1234}, {});

  builder.add_sample(
      {{work, root},
       {200, 2'000'000'000},
       {builder.number_label(kThreadIdLabel, 7), builder.text_label(kProcessNameLabel, "app")}});
  builder.add_sample(
      {{unnamed, root},
       {100, 1'000'000'000},
       {builder.number_label(kThreadIdLabel, 8), builder.text_label(kProcessNameLabel, "app")}});
  return std::move(builder).build();
}

}  // namespace ddprof::testing_data
