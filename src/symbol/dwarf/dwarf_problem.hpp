#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace ddprof {

// The first thing that was wrong with the bytes, as a sentence. What follows is most often its consequence.
class DwarfProblem {
 public:
  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    if (text_.empty()) text_ = fmt::format(format, std::forward<Args>(args)...);
  }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace ddprof
