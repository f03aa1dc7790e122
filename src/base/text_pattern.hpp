#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct re_pattern_buffer;

namespace ddprof {

// A POSIX extended regular expression, as of grep -E: it comes with libc, and unlike std::regex it neither
// throws nor recurses over long names.
class TextPattern {
 public:
  static Result<TextPattern> compile(const std::string& expression);

  // Whether any part of `text` matches.
  [[nodiscard]] bool matches(const std::string& text) const;

 private:
  struct Free {
    void operator()(re_pattern_buffer* compiled) const;
  };
  using Compiled = std::unique_ptr<re_pattern_buffer, Free>;

  explicit TextPattern(Compiled compiled) : compiled_(std::move(compiled)) {}

  Compiled compiled_;
};

}  // namespace ddprof
