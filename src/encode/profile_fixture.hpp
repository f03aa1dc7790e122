#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "profile/profile_view.hpp"

namespace ddprof::testing_data {

// Two processes with three threads: inlined calls, a kernel frame, code of a JIT compiler, a marker, a frame
// without a name, names that need escaping.
class RichProfile {
 public:
  RichProfile() {
    Profile& profile = builder_.profile();
    profile.value_types = {builder_.value_type("samples", "count"),
                           builder_.value_type("cpu", "nanoseconds")};
    profile.default_value_type = builder_.intern("cpu");
    profile.period_type = builder_.value_type("cpu", "nanoseconds");
    profile.period = 10'000'000;
    profile.time_ns = 1'700'000'000'000'000'000;
    profile.duration_ns = 4'000'000'000;
    profile.comments = {builder_.intern("a \"comment\"")};

    const std::uint32_t app = mapping(0x400000, "/usr/bin/app", "0123456789abcdef0123456789abcdef01234567");
    const std::uint32_t libc = mapping(0x7f0000000000, "/lib/libc.so.6", "");
    const std::uint32_t kernel = mapping(0xffff800000000000, "[kernel.kallsyms]", "");
    const std::uint32_t jit = mapping(0x10000000, "[anonymous code]", "");
    main_ = location(app, 0x100, {{"main", 34}});
    work_ = location(app, 0x123, {{"add(int; int)", 2}, {"scale<\"x\">", 5}, {"work()", 12}});
    read_ = location(kernel, 0x10, {{"sys_read", 0}});
    lambda_ = location(jit, 0x20, {{"lambda\n1", 0}});
    nameless_ = location(libc, 0x1234, {});
    lost_ = builder_.add_named_location("[lost: ring buffer full]");

    add({work_, main_}, 200, 100, "app", "app", 100);
    add({read_, nameless_, main_}, 50, 100, "app", "app", 100);
    add({lambda_, main_}, 70, 101, "wörker", "app", 100);
    add({work_, main_}, 30, 101, "wörker", "app", 100);
    add({lost_}, 5, 200, "other", "other", 200);
  }

  void add(std::vector<std::uint32_t> stack, std::int64_t count, std::int64_t tid, std::string_view thread,
           std::string_view process, std::int64_t pid, std::int64_t time = 0) {
    ProfileSample sample{std::move(stack), {count, count * 10'000'000}, {}};
    sample.labels = {
        builder_.number_label(kThreadIdLabel, tid), builder_.text_label(kThreadNameLabel, thread),
        builder_.number_label(kProcessIdLabel, pid), builder_.text_label(kProcessNameLabel, process)};
    if (time != 0) sample.labels.push_back(builder_.number_label(kEndTimestampLabel, time, "nanoseconds"));
    builder_.add_sample(std::move(sample));
  }

  [[nodiscard]] std::uint32_t main() const { return main_; }
  [[nodiscard]] std::uint32_t work() const { return work_; }
  [[nodiscard]] Profile build() && { return std::move(builder_).build(); }
  [[nodiscard]] Profile& profile() { return builder_.profile(); }

 private:
  struct Call {
    std::string_view name;
    std::int64_t line;
  };

  std::uint32_t mapping(std::uint64_t start, std::string_view path, std::string_view build_id) {
    return builder_.add_mapping({.start = {start},
                                 .limit = {start + 0x10000},
                                 .file_offset = 0x1000,
                                 .path = builder_.intern(path),
                                 .build_id = builder_.intern(build_id),
                                 .has_functions = true});
  }

  std::uint32_t location(std::uint32_t mapping, std::uint64_t offset, std::vector<Call> calls) {
    std::vector<ProfileLine> lines;
    for (const Call& call : calls) {
      const std::string_view file = call.line != 0 ? "app.cc" : "";
      lines.push_back({builder_.add_function(call.name, {}, file, call.line == 0 ? 0 : call.line - 1),
                       call.line, call.line == 0 ? 0 : 7});
    }
    return builder_.add_location(mapping, builder_.profile().mappings[mapping].start + offset, lines);
  }

  ProfileBuilder builder_;
  std::uint32_t main_ = 0, work_ = 0, read_ = 0, lambda_ = 0, nameless_ = 0, lost_ = 0;
};

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

// What a profile says, whatever its tables look like: for each thread and stack (root first, by name) the
// sums of its columns.
using Digest = std::map<std::string, std::vector<std::int64_t>>;

inline std::string stack_text(const FrameTable& names, const ProfileSample& sample) {
  std::string text;
  for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
    const auto frames = names.frames(*location);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += (text.empty() ? "" : ";") + names[*frame].name;
  }
  return text;
}

inline Digest digest(const Profile& profile, bool with_threads = true) {
  const FrameTable names(profile);
  Digest digest;
  for (const ProfileSample& sample : profile.samples) {
    std::string key = stack_text(names, sample);
    if (with_threads) {
      key += fmt::format(" in {} {} of {} {}", label_text(profile, sample, kThreadNameLabel),
                         label_text(profile, sample, kThreadIdLabel),
                         label_text(profile, sample, kProcessNameLabel),
                         label_text(profile, sample, kProcessIdLabel));
    }
    std::vector<std::int64_t>& sums = digest[key];
    sums.resize(profile.value_types.size());
    for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += sample.values[at];
  }
  return digest;
}

// The same with the default column alone, for formats that hold no other.
inline Digest default_digest(const Profile& profile, bool with_threads = true) {
  const std::size_t column = default_column(profile).value_or(0);
  Digest all = digest(profile, with_threads);
  for (auto& [key, sums] : all) sums = {sums.at(column)};
  return all;
}

inline std::vector<std::string> column_names(const Profile& profile) {
  std::vector<std::string> names;
  for (const ValueType& type : profile.value_types)
    names.push_back(fmt::format("{}/{}", profile.text(type.type), profile.text(type.unit)));
  return names;
}

}  // namespace ddprof::testing_data
