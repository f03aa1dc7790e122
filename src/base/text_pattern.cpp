#include "base/text_pattern.hpp"

#include <regex.h>

#include <array>
#include <cctype>

namespace ddprof {

void TextPattern::Free::operator()(re_pattern_buffer* compiled) const {
  regfree(compiled);
  std::default_delete<re_pattern_buffer>{}(compiled);
}

Result<TextPattern> TextPattern::compile(const std::string& expression) {
  auto buffer = std::make_unique<regex_t>();
  const int failure = regcomp(buffer.get(), expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (failure == 0) return TextPattern(Compiled(buffer.release()));
  std::array<char, 200> reason{};
  regerror(failure, buffer.get(), reason.data(), reason.size());
  reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return make_error(ErrorCode::invalid_argument, "regular expression '{}': {}", expression, reason.data());
}

bool TextPattern::matches(const std::string& text) const {
  return regexec(compiled_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace ddprof
