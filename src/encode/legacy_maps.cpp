#include "encode/legacy_maps.hpp"

#include <algorithm>
#include <optional>

#include "encode/text_lines.hpp"

namespace ddprof {

namespace {

// 00400000-00452000 r-xp 00001000 08:02 173521 /usr/bin/app
std::optional<ProfileMapping> parse_maps_line(std::string_view line, ProfileBuilder& builder) {
  const std::optional<std::uint64_t> start = take_number(line, 16);
  if (!start || !take_word(line, "-")) return std::nullopt;
  const std::optional<std::uint64_t> limit = take_number(line, 16);
  line = trimmed(line);
  if (!limit || *limit <= *start || line.size() < 5 || line[2] != 'x') return std::nullopt;
  line.remove_prefix(4);
  const std::optional<std::uint64_t> offset = take_number(line, 16);
  const bool has_device = offset && take_number(line, 16) && take_word(line, ":") && take_number(line, 16);
  if (!has_device || !take_number(line)) return std::nullopt;
  return ProfileMapping{
      .start = {*start}, .limit = {*limit}, .file_offset = *offset, .path = builder.intern(trimmed(line))};
}

}  // namespace

LegacyMaps::LegacyMaps(std::string_view text, ProfileBuilder& builder) : builder_(builder) {
  TextLines lines(text);
  while (const std::optional<std::string_view> line = lines.next()) {
    if (const std::optional<ProfileMapping> mapping = parse_maps_line(*line, builder))
      by_start_.push_back(builder.add_mapping(*mapping));
  }
  const std::vector<ProfileMapping>& mappings = builder.profile().mappings;
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t left, std::uint32_t right) {
    return mappings[left].start < mappings[right].start;
  });
}

std::uint32_t LegacyMaps::location(std::uint64_t address) {
  const std::vector<ProfileMapping>& mappings = builder_.profile().mappings;
  const auto after = std::upper_bound(
      by_start_.begin(), by_start_.end(), address,
      [&](std::uint64_t wanted, std::uint32_t at) { return wanted < mappings[at].start.value; });
  const bool is_inside = after != by_start_.begin() && address < mappings[*std::prev(after)].limit.value;
  return builder_.add_location(is_inside ? *std::prev(after) : kNoMapping, {address}, {});
}

}  // namespace ddprof
