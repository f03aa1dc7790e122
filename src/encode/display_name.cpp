#include <algorithm>
#include <optional>
#include <vector>

#include "encode/display_text.hpp"

// C++ names are long because of their template arguments. They are given up from the inside out, since the
// outermost say the most; the scope and the name of the function stay.

namespace ddprof {

namespace {

constexpr std::size_t kMaxNesting = 8;  // deeper arguments go together with the eighth level
constexpr std::string_view kOperator = "operator";

// Whether the < or > at `at` is an operator's or an arrow's, not a bracket.
bool is_part_of_operator(std::string_view name, std::size_t at) {
  if (name[at] == '>' && at > 0 && name[at - 1] == '-') return true;
  const std::string_view before = name.substr(0, at);
  if (before.ends_with(kOperator)) return true;
  // The second half of <<, >> and the = of <=> need no care: only brackets do.
  return (before.ends_with("operator<") && name[at] == '<') ||
         (before.ends_with("operator>") && name[at] == '>') ||
         (before.ends_with("operator<=") && name[at] == '>');
}

// How many brackets each byte is in; the brackets themselves belong to the outside.
class Nesting {
 public:
  static std::optional<Nesting> read(std::string_view name, char open, char close) {
    Nesting nesting;
    std::size_t depth = 0;
    for (std::size_t at = 0; at < name.size(); ++at) {
      const bool is_bracket = (name[at] == open || name[at] == close) && !is_part_of_operator(name, at);
      if (is_bracket && name[at] == close) {
        if (depth == 0) return std::nullopt;
        --depth;
      }
      nesting.depths_.push_back(depth);
      nesting.deepest_ = std::max(nesting.deepest_, depth);
      if (is_bracket && name[at] == open) ++depth;
    }
    if (depth != 0) return std::nullopt;
    return nesting;
  }

  [[nodiscard]] std::size_t deepest() const { return deepest_; }

  // Everything from this depth on becomes "…".
  [[nodiscard]] std::string without(std::string_view name, std::size_t depth) const {
    std::string result;
    for (std::size_t at = 0; at < name.size(); ++at) {
      if (depths_[at] < depth) {
        result += name[at];
      } else if (at == 0 || depths_[at - 1] < depth) {
        result += "…";
      }
    }
    return result;
  }

 private:
  std::vector<std::size_t> depths_;
  std::size_t deepest_ = 0;
};

std::string without_brackets(const std::string& name, char open, char close, std::size_t width) {
  const std::optional<Nesting> nesting = Nesting::read(name, open, close);
  if (!nesting) return name;
  std::string shorter = name;
  for (std::size_t depth = std::min(nesting->deepest(), kMaxNesting);
       depth > 0 && display_width(shorter) > width; --depth)
    shorter = nesting->without(name, depth);
  return shorter;
}

}  // namespace

std::string fit_name(std::string_view name, std::size_t width) {
  std::string text = printable(name);
  if (display_width(text) <= width) return text;
  text = without_brackets(text, '<', '>', width);
  if (display_width(text) > width) text = without_brackets(text, '(', ')', width);
  return fit(text, width);
}

}  // namespace ddprof
