#include "encode/flame_colors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "encode/escaped_text.hpp"
#include "encode/firefox_categories.hpp"

namespace ddprof {

namespace {

using Color = FlameColors::Color;

// Paul Tol's "light" scheme, which can be told apart with any kind of colour vision; black text on each has a
// contrast of at least 7. Programs get the first hues. One is the kernel's, and grey is for all that has
// none.
constexpr auto kHues = std::to_array<Color>({{0xee, 0x88, 0x66},
                                             {0x77, 0xaa, 0xdd},
                                             {0x44, 0xbb, 0x99},
                                             {0xee, 0xdd, 0x88},
                                             {0xff, 0xaa, 0xbb},
                                             {0x99, 0xdd, 0xff},
                                             {0xaa, 0xaa, 0x00}});
constexpr Color kKernelHue{0xbb, 0xcc, 0x33}, kGrey{0xdd, 0xdd, 0xdd};
constexpr Color kWhite{255, 255, 255}, kBlack{0, 0, 0};

Color mixed(Color color, Color with, double share) {
  const auto mix = [&](int from, int to) { return static_cast<int>(from + (to - from) * share + 0.5); };
  return {mix(color.red, with.red), mix(color.green, with.green), mix(color.blue, with.blue)};
}

std::string hex(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

bool is_hatched(FlameColors::Kind kind) {
  return kind == FlameColors::Kind::kernel || kind == FlameColors::Kind::marker;
}

// "libc.so.6", "foo.so", "[vdso]".
bool is_library(std::string_view module) {
  const std::size_t at = module.find(".so");
  return module == "[vdso]" ||
         (at != std::string_view::npos && (at + 3 == module.size() || module[at + 3] == '.'));
}

FlameColors::Kind kind_of(std::string_view path, const NamedFrame& frame) {
  switch (firefox_category(path, frame.name, frame.is_marker)) {
    case FirefoxCategory::marker:
      return FlameColors::Kind::marker;
    case FirefoxCategory::kernel:
      return FlameColors::Kind::kernel;
    case FirefoxCategory::jit:
      return FlameColors::Kind::jit;
    default:
      return is_library(frame.module) ? FlameColors::Kind::library : FlameColors::Kind::program;
  }
}

std::string module_name(FlameColors::Kind kind, const NamedFrame& frame) {
  if (kind == FlameColors::Kind::marker) return "missed";
  if (kind == FlameColors::Kind::kernel) return "kernel";
  if (kind == FlameColors::Kind::jit) return "JIT code";
  return frame.module.empty() ? "no module" : clean_text(frame.module);
}

}  // namespace

FlameColors::FlameColors(const Profile& profile, const FrameTable& frames, std::size_t column) {
  std::vector<Module> all;
  std::map<std::pair<Kind, std::string>, std::size_t> index;
  std::vector<std::size_t> of_frame(frames.size());
  for (std::uint32_t at = 0; at < profile.locations.size(); ++at) {
    const std::uint32_t mapping = profile.locations[at].mapping;
    const std::string_view path =
        mapping == kNoMapping ? std::string_view() : profile.text(profile.mappings[mapping].path);
    for (const std::uint32_t id : frames.frames(at)) {
      const Kind kind = kind_of(path, frames[id]);
      const auto [entry, is_new] = index.try_emplace({kind, module_name(kind, frames[id])}, all.size());
      if (is_new) all.push_back({entry->first.second, kind});
      of_frame[id] = entry->second;
    }
  }
  for (const ProfileSample& sample : profile.samples) {
    if (sample.locations.empty()) continue;
    Module& module = all[of_frame[frames.frames(sample.locations.front()).front()]];
    module.self = saturating_add(module.self, sample.values[column]);
  }
  add_largest(std::move(all), std::move(of_frame));
  choose_colors();
}

// Those with the most, so many as there are hues; the others together; markers.
void FlameColors::add_largest(std::vector<Module> all, std::vector<std::size_t> all_of_frame) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto rank = [&](std::size_t at) {
    return std::tuple(all[at].kind == Kind::marker, -all[at].self, std::string_view(all[at].name));
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t left, std::size_t right) { return rank(left) < rank(right); });
  std::vector<std::size_t> new_index(all.size());
  for (const std::size_t at : order) {
    if (modules_.size() > kHues.size() && all[at].kind != Kind::marker) {
      Module& others = modules_.back();
      others = {"other modules", Kind::library, saturating_add(others.self, all[at].self),
                others.modules + 1};
    } else {
      modules_.push_back(std::move(all[at]));
    }
    new_index[at] = modules_.size() - 1;
  }
  module_of_ = std::move(all_of_frame);
  for (std::size_t& module : module_of_) module = new_index[module];
}

void FlameColors::choose_colors() {
  std::size_t used = 0;
  for (const bool is_for_programs : {true, false}) {
    for (Module& module : modules_) {
      if ((module.kind == Kind::program) != is_for_programs) continue;
      if (module.kind == Kind::kernel) {
        module.color = kKernelHue;
      } else if (module.kind == Kind::marker || module.modules > 1 || used == kHues.size()) {
        module.color = kGrey;
      } else {
        module.color = kHues[used++];
        if (module.kind == Kind::library) module.color = mixed(module.color, kWhite, 0.45);
      }
    }
  }
}

std::string FlameColors::css_class(std::size_t module, std::size_t shade) {
  return fmt::format("m{}{}", module, std::string_view("abc").substr(shade, 1));
}

std::string FlameColors::css() const {
  std::string rules;
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    const Kind kind = modules_[module].kind;
    for (std::size_t shade = 0; shade < kShades; ++shade) {
      const Color color = mixed(modules_[module].color, kWhite, 0.12 * static_cast<double>(shade));
      const std::string fill = is_hatched(kind) ? fmt::format("url(#hatch{})", module) : hex(color);
      fmt::format_to(std::back_inserter(rules), ".{}{{fill:{}}}\n", css_class(module, shade), fill);
    }
  }
  return rules;
}

std::string FlameColors::patterns() const {
  std::string text;
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    const Kind kind = modules_[module].kind;
    if (!is_hatched(kind)) continue;
    const Color color = mixed(modules_[module].color, kWhite, 0.3);
    fmt::format_to(std::back_inserter(text),
                   R"(<pattern id="hatch{}" width="6" height="6" patternUnits="userSpaceOnUse" )"
                   R"x(patternTransform="rotate({})"><rect width="6" height="6" fill="{}"/>)x"
                   R"(<rect width="2" height="6" fill="{}"/></pattern>)"
                   "\n",
                   module, kind == Kind::kernel ? 45 : -45, hex(color), hex(mixed(color, kBlack, 0.1)));
  }
  return text;
}

}  // namespace ddprof
