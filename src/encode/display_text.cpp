#include "encode/display_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "encode/escaped_text.hpp"

namespace ddprof {

// C++ names are long because of their template arguments. They are given up from the inside out, since the
// outermost say the most; the scope and the name of the function stay.

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

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "…";

struct CodeRange {
  std::uint32_t first, last;
};

// Blocks of combining marks and zero-width characters, and of wide ones (Unicode's EastAsianWidth W and F):
// whole blocks are near enough for a table's columns.
constexpr auto kNarrowest = std::to_array<CodeRange>({{0x0300, 0x036f},
                                                      {0x0483, 0x0489},
                                                      {0x0591, 0x05bd},
                                                      {0x0610, 0x061a},
                                                      {0x064b, 0x065f},
                                                      {0x1ab0, 0x1aff},
                                                      {0x1dc0, 0x1dff},
                                                      {0x200b, 0x200f},
                                                      {0x202a, 0x202e},
                                                      {0x2060, 0x2064},
                                                      {0x20d0, 0x20ff},
                                                      {0xfe00, 0xfe0f},
                                                      {0xfe20, 0xfe2f}});
constexpr auto kWide = std::to_array<CodeRange>({{0x1100, 0x115f},
                                                 {0x2e80, 0x303e},
                                                 {0x3041, 0xa4cf},
                                                 {0xac00, 0xd7a3},
                                                 {0xf900, 0xfaff},
                                                 {0xfe30, 0xfe6f},
                                                 {0xff00, 0xff60},
                                                 {0xffe0, 0xffe6},
                                                 {0x1f300, 0x1f64f},
                                                 {0x1f680, 0x1f6ff},
                                                 {0x1f900, 0x1f9ff},
                                                 {0x20000, 0x3fffd}});

struct Character {
  std::string_view bytes;
  std::uint32_t code = 0xfffd;
};

// The first character; a byte that is no UTF-8 is one of its own.
Character first_character(std::string_view text) {
  const std::size_t length = utf8_sequence_length(text);
  if (length == 0) return {text.substr(0, 1)};
  constexpr std::array<std::uint32_t, 5> kLeadBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(text[0]) & kLeadBits[length];
  for (std::size_t at = 1; at < length; ++at)
    code = code << 6U | (static_cast<unsigned char>(text[at]) & 0x3fU);
  return {text.substr(0, length), code};
}

bool is_in(std::uint32_t code, std::span<const CodeRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

std::size_t width_of(std::uint32_t code) {
  if (code < kNarrowest[0].first) return 1;
  if (is_in(code, kNarrowest)) return 0;
  return is_in(code, kWide) ? 2 : 1;
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

bool is_plain(char letter) { return letter >= 0x20 && letter < 0x7f; }

// As many whole characters from the front as fit.
std::string_view head_of(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const Character character = first_character(rest);
    const std::size_t columns = width_of(character.code);
    if (columns > width) break;
    width -= columns;
    bytes += character.bytes.size();
    rest.remove_prefix(character.bytes.size());
  }
  return text.substr(0, bytes);
}

}  // namespace

namespace {

// "\x1b[1;31m" at the front; 0: there is none.
std::size_t color_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::size_t layout_length(std::string_view text) {
  return text[0] == '\n' || text[0] == '\t' ? 1 : color_length(text);
}

std::size_t no_layout(std::string_view /*text*/) { return 0; }

template <typename LengthAllowed>
std::string cleaned(std::string_view text, LengthAllowed length_allowed) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t allowed = length_allowed(text);
    const Character character = first_character(text);
    const bool is_bad = is_control(character.code) || utf8_sequence_length(text) == 0;
    const std::size_t size = allowed > 0 ? allowed : character.bytes.size();
    clean += allowed == 0 && is_bad ? kReplacement : text.substr(0, size);
    text.remove_prefix(size);
  }
  return clean;
}

}  // namespace

std::string printable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  return cleaned(text, no_layout);
}

std::string printable_lines(std::string_view text) { return cleaned(text, layout_length); }

std::size_t display_width(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return text.size();
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += width_of(character.code);
    text.remove_prefix(character.bytes.size());
  }
  return width;
}

std::string fit(std::string_view text, std::size_t width) {
  const std::string clean = printable(text);
  const std::size_t full = display_width(clean);
  if (full <= width) return clean;
  if (width == 0) return {};
  const std::string head(head_of(clean, width / 2));
  const std::size_t tail = width - 1 - display_width(head);
  // What is in front of the tail, and one character more when a wide one straddles the border.
  std::string_view skipped = head_of(clean, full - tail);
  std::string_view rest = std::string_view(clean).substr(skipped.size());
  if (display_width(rest) > tail) rest.remove_prefix(first_character(rest).bytes.size());
  return head + std::string(kEllipsis) + std::string(rest);
}

std::string fit_left(std::string_view text, std::size_t width) {
  std::string clean = printable(text);
  if (display_width(clean) <= width) return clean;
  if (width == 0) return {};
  return std::string(head_of(clean, width - 1)) + std::string(kEllipsis);
}

std::string left_aligned(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string right_aligned(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::size_t taken = display_width(text.substr(0, end));
    if (column > indent && column + 1 + taken > columns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(0, end);
    column += taken;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace ddprof
