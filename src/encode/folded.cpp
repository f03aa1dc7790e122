#include "encode/viewer_formats.hpp"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/escaped_text.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

// ';' separates frames and a newline ends the stack, so neither may be in a name.
void append_frame(std::string& stack, std::string_view name) {
  if (!stack.empty()) stack += ';';
  for (char letter : to_utf8(name)) {
    const bool is_control = static_cast<unsigned char>(letter) < 0x20;
    stack += letter == ';' ? ':' : is_control ? ' ' : letter;
  }
}

std::string process_name(const Profile& profile, const ProfileSample& sample) {
  std::string name = label_text(profile, sample, kProcessNameLabel);
  if (!name.empty()) return name;
  // By convention the first mapping is the main program's.
  if (!profile.mappings.empty()) name = base_name(profile.text(profile.mappings.front().path));
  return name;
}

std::string folded_stack(const Profile& profile, const FrameTable& table, const ProfileSample& sample) {
  std::string stack;
  if (const std::string process = process_name(profile, sample); !process.empty())
    append_frame(stack, process);
  for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
    const auto frames = table.frames(*location);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      append_frame(stack, table[*frame].name);
  }
  return stack;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) > ' ' && letter != ';';
  });
}

void append_value_line(std::string& text, const Profile& profile, const ValueType& column) {
  const std::string_view type = profile.text(column.type), unit = profile.text(column.unit);
  if (is_word(type) && is_word(unit))
    fmt::format_to(std::back_inserter(text), "{}{} {} 0\n", kFoldedValue, to_utf8(type), to_utf8(unit));
}

}  // namespace

std::string encode_folded(const Profile& profile) {
  const std::optional<std::size_t> column = default_column(profile);
  if (!column) return {};
  const FrameTable table(profile);
  absl::flat_hash_map<std::string, std::int64_t> sums;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.values[*column] == 0) continue;
    std::string stack = folded_stack(profile, table, sample);
    if (stack.empty()) stack = "[no stack]";
    std::int64_t& sum = sums[std::move(stack)];
    sum = saturating_add(sum, sample.values[*column]);
  }
  std::vector<std::pair<std::string_view, std::int64_t>> lines(sums.begin(), sums.end());
  std::sort(lines.begin(), lines.end());
  std::string text;
  append_value_line(text, profile, profile.value_types[*column]);
  for (const auto& [stack, value] : lines) fmt::format_to(std::back_inserter(text), "{} {}\n", stack, value);
  return text;
}

}  // namespace ddprof
