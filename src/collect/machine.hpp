#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// The files of /proc, /sys and the like, by their own absolute paths. Tests put another root before them.
class Machine {
 public:
  explicit Machine(std::string root = {}) : root_(std::move(root)) {}

  [[nodiscard]] std::string path(std::string_view path) const { return root_ + std::string(path); }
  // The content without the last line break. Nothing when it cannot be read, or is not small.
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> link(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace ddprof
