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

// Whether the <, >, ( or ) at `at` is an operator's or an arrow's, not a bracket.
bool is_part_of_operator(std::string_view name, std::size_t at) {
  if (name[at] == '>' && at > 0 && name[at - 1] == '-') return true;
  const std::string_view before = name.substr(0, at);
  if (before.ends_with(kOperator)) return true;
  // The second half of <<, >> and the = of <=> need no care: only brackets do.
  return (before.ends_with("operator<") && name[at] == '<') ||
         (before.ends_with("operator>") && name[at] == '>') ||
         (before.ends_with("operator<=") && name[at] == '>') ||
         (before.ends_with("operator(") && name[at] == ')');
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

std::string without_arguments(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  const std::string shorter = without_brackets(text, '<', '>', width);
  return display_width(shorter) <= width ? shorter : without_brackets(shorter, '(', ')', width);
}

// A name whose arguments are elided, as "void std::vector<…>::push_back(…) const", without return type,
// brackets and what follows them: "std::vector::push_back".
std::string bare_name(std::string text) {
  constexpr std::string_view kElided = "<…>";
  for (std::size_t at = text.find(kElided); at != std::string::npos; at = text.find(kElided, at))
    text.erase(at, kElided.size());
  // Of a lambda in a const function: "f() const::{lambda()#1}::operator()() const".
  for (std::size_t at = text.find(" const::"); at != std::string::npos; at = text.find(" const::", at))
    text.erase(at, std::string_view(" const").size());
  // Parameters end a name, or only qualifiers follow. In Go "main.(…).handle" they are a receiver.
  const std::size_t open = text.rfind('('), close = text.find(')', open);
  const bool has_parameters = open != std::string::npos && open > 0 &&
                              (close + 1 == text.size() || (close < text.size() && text[close + 1] == ' ')) &&
                              !std::string_view(text).substr(0, open).ends_with(kOperator);
  if (has_parameters) text.erase(open);
  if (const std::size_t tag = text.rfind('['); text.ends_with(']') && tag > 0 && tag != std::string::npos)
    text.erase(tag);
  // Only names with parameters have a return type. "operator new" holds a space of its own.
  const std::size_t space = has_parameters ? text.rfind(' ', text.rfind(kOperator)) : std::string::npos;
  return space == std::string::npos ? text : text.substr(space + 1);
}

// As many scopes from the end as fit, at least one.
std::string_view last_scopes(std::string_view name, std::size_t width) {
  if (display_width(name) <= width) return name;
  std::size_t scope = name.rfind("::");
  std::string_view tail = scope == std::string_view::npos ? name : name.substr(scope + 2);
  while (scope != std::string_view::npos && scope > 0) {
    scope = name.rfind("::", scope - 1);
    const std::string_view longer = scope == std::string_view::npos ? name : name.substr(scope + 2);
    if (display_width(longer) > width) break;
    tail = longer;
  }
  return tail;
}

}  // namespace

std::string fit_name(std::string_view name, std::size_t width) {
  return fit(without_arguments(printable(name), width), width);
}

std::string fit_short_name(std::string_view name, std::size_t width) {
  std::string text = without_arguments(printable(name), width);
  if (display_width(text) <= width) return text;
  if (const std::string bare = bare_name(without_arguments(text, 0)); !bare.empty() && !text.starts_with("["))
    text = bare;
  return fit(last_scopes(text, width), width);
}

}  // namespace ddprof
