#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

// The hue of a frame is its module's: full for programs, paler for libraries, hatched for the kernel.
// Markers, which are not code, are grey and hatched. Functions of one module differ a little, so that
// neighbours can be told apart.
class FlameColors {
 public:
  enum class Kind : std::uint8_t { program, library, kernel, jit, marker };

  struct Color {
    int red = 0, green = 0, blue = 0;
  };

  struct Module {
    std::string name;  // clean: "shop", "kernel"; "other modules" for those without a hue
    Kind kind = Kind::program;
    std::int64_t self = 0;    // of the samples that ended in it
    std::size_t modules = 1;  // how many these are
    Color color{};
  };

  FlameColors(const Profile& profile, const FrameTable& frames, std::size_t column);

  // By self value, the largest first; what is not code comes last.
  [[nodiscard]] std::span<const Module> modules() const { return modules_; }
  [[nodiscard]] std::size_t module_of(std::uint32_t frame) const { return module_of_[frame]; }

  // The CSS class of a module, in one of kShades.
  static constexpr std::size_t kShades = 3;
  [[nodiscard]] static std::string css_class(std::size_t module, std::size_t shade = 0);
  // The rules of these classes, and the patterns that they refer to.
  [[nodiscard]] std::string css() const;
  [[nodiscard]] std::string patterns() const;

 private:
  void add_largest(std::vector<Module> all, std::vector<std::size_t> all_of_frame);
  void choose_colors();

  std::vector<Module> modules_;
  std::vector<std::size_t> module_of_;  // by frame
};

}  // namespace ddprof
