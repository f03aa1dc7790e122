#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "report/headline.hpp"

namespace ddprof {

// For tests: profiles of any shape from stacks written root first, one frame each as
// NAME[@FILE:LINE][!MODULE]. Without a module a frame is of /srv/app; "!kernel" is the kernel's, "!jit" a JIT
// compiler's; "?" has no name.
class HeadlineFixture {
 public:
  explicit HeadlineFixture(std::string_view type = "cpu") {
    builder_.profile().value_types = {builder_.value_type("samples", "count"),
                                      builder_.value_type(type, "nanoseconds")};
    builder_.profile().default_value_type = builder_.intern(type);
  }

  HeadlineFixture& add(const std::string& stack, std::int64_t samples, std::string_view process = "app") {
    std::vector<std::uint32_t> locations;
    std::istringstream frames(stack);
    for (std::string frame; std::getline(frames, frame, ';');)
      locations.insert(locations.begin(), location(frame));
    constexpr std::int64_t kPeriod = 10'000'000;
    // A marker alone is time without samples.
    const std::int64_t count = stack.front() == '[' && locations.size() == 1 ? 0 : samples;
    builder_.add_sample(
        {locations, {count, samples * kPeriod}, {builder_.text_label(kProcessNameLabel, process)}});
    return *this;
  }

  [[nodiscard]] std::vector<Headline> headlines(const TextPattern* own = nullptr) {
    const auto view = make_report_view(builder_.profile());
    return headlines_of(*view, OwnCode(builder_.profile(), view->frames, own));
  }
  [[nodiscard]] Headline headline(const TextPattern* own = nullptr) { return headlines(own).front(); }
  [[nodiscard]] std::string text(const TextPattern* own = nullptr) {
    return headline_text(headline(own), spoken_name);
  }
  ProfileBuilder& builder() { return builder_; }

 private:
  std::uint32_t mapping(const std::string& module) {
    const auto [known, is_new] = mappings_.emplace(module, 0);
    if (!is_new) return known->second;
    const std::string path = module.empty()       ? "/srv/app"
                             : module == "kernel" ? "[kernel.kallsyms]"
                             : module == "jit"    ? "[anonymous code]"
                             : module[0] == '/'   ? module
                                                  : "/usr/lib/" + module;
    const std::uint64_t start = 0x100000 * (mappings_.size() + 1);
    known->second =
        builder_.add_mapping({.start = {start}, .limit = {start + 0x100000}, .path = builder_.intern(path)});
    return known->second;
  }

  std::uint32_t location(std::string frame) {
    std::string module, file;
    std::int64_t line = 0;
    if (frame[0] == '[') return builder_.add_location(kNoMapping, {}, lines_of(frame, "", 0));
    if (const std::size_t at = frame.find('!'); at != std::string::npos) {
      module = frame.substr(at + 1);
      frame.resize(at);
    }
    if (const std::size_t at = frame.find('@'); at != std::string::npos) {
      const std::size_t colon = frame.rfind(':');
      file = frame.substr(at + 1, colon - at - 1);
      line = std::stoll(frame.substr(colon + 1));
      frame.resize(at);
    }
    const std::uint32_t in = mapping(module);
    const Address address{builder_.profile().mappings[in].start.value + 16 * ++addresses_};
    if (frame == "?") return builder_.add_location(in, address, {});
    return builder_.add_location(in, address, lines_of(frame, file, line));
  }

  std::vector<ProfileLine> lines_of(const std::string& name, const std::string& file, std::int64_t line) {
    return {{builder_.add_function(name, {}, file), line}};
  }

  ProfileBuilder builder_;
  std::map<std::string, std::uint32_t> mappings_;
  std::uint64_t addresses_ = 0;
};

}  // namespace ddprof
