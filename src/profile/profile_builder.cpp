#include "profile/profile_builder.hpp"

#include <algorithm>
#include <functional>

#include "profile/dense_index.hpp"

namespace ddprof {

namespace {

std::uint64_t hash_words(std::initializer_list<std::uint64_t> words) {
  std::uint64_t hash = words.size();
  for (std::uint64_t word : words) hash = hash_mix(hash, word);
  return hash;
}

bool is_same(const ProfileMapping& left, const ProfileMapping& right) {
  return left.start == right.start && left.limit == right.limit && left.file_offset == right.file_offset &&
         left.path == right.path && left.build_id == right.build_id;
}

bool is_same(const ProfileFunction& left, const ProfileFunction& right) {
  return left.name == right.name && left.system_name == right.system_name && left.file == right.file &&
         left.start_line == right.start_line;
}

bool is_same(const ProfileLine& left, const ProfileLine& right) {
  return left.function == right.function && left.line == right.line && left.column == right.column;
}

// The position of `value` in `values`, which gets it appended when it is new.
template <typename Values, typename Value, typename Equal>
std::uint32_t find_or_append(DenseIndex& index, Values& values, std::uint64_t hash, Value&& value,
                             Equal&& equal) {
  const std::uint32_t known = index.find(hash, [&](std::uint32_t at) { return equal(values[at]); });
  if (known != DenseIndex::kNotFound) return known;
  values.emplace_back(std::forward<Value>(value));
  return index.append(hash);
}

}  // namespace

StringIndex ProfileBuilder::intern(std::string_view text) {
  // The profile is born with "" at 0; the table learns of it here.
  if (strings_.size() == 0) strings_.append(std::hash<std::string_view>{}({}));
  return find_or_append(strings_, profile_.strings, std::hash<std::string_view>{}(text), text,
                        [&](const std::string& known) { return known == text; });
}

std::uint32_t ProfileBuilder::add_mapping(const ProfileMapping& mapping) {
  const std::uint64_t hash = hash_words(
      {mapping.start.value, mapping.limit.value, mapping.file_offset, mapping.path, mapping.build_id});
  const std::uint32_t at =
      find_or_append(mappings_, profile_.mappings, hash, mapping,
                     [&](const ProfileMapping& known) { return is_same(known, mapping); });
  ProfileMapping& merged = profile_.mappings[at];
  merged.has_functions |= mapping.has_functions;
  merged.has_filenames |= mapping.has_filenames;
  merged.has_lines |= mapping.has_lines;
  merged.has_inlines |= mapping.has_inlines;
  return at;
}

std::uint32_t ProfileBuilder::add_function(std::string_view name, std::string_view system_name,
                                           std::string_view file, std::int64_t start_line) {
  const ProfileFunction function{intern(name.empty() ? system_name : name),
                                 intern(system_name.empty() ? name : system_name), intern(file), start_line};
  const std::uint64_t hash = hash_words(
      {function.name, function.system_name, function.file, static_cast<std::uint64_t>(function.start_line)});
  return find_or_append(functions_, profile_.functions, hash, function,
                        [&](const ProfileFunction& known) { return is_same(known, function); });
}

std::uint32_t ProfileBuilder::add_location(std::uint32_t mapping, Address address,
                                           std::span<const ProfileLine> lines) {
  std::uint64_t hash = hash_words({mapping, address.value, lines.size()});
  for (const ProfileLine& line : lines) {
    hash = hash_mix(hash_mix(hash, line.function), static_cast<std::uint64_t>(line.line));
  }
  const std::uint32_t known = locations_.find(hash, [&](std::uint32_t at) {
    const ProfileLocation& location = profile_.locations[at];
    return location.mapping == mapping && location.address == address &&
           std::equal(lines.begin(), lines.end(), location.lines.begin(), location.lines.end(),
                      [](const ProfileLine& left, const ProfileLine& right) { return is_same(left, right); });
  });
  if (known != DenseIndex::kNotFound) return known;
  profile_.locations.push_back({mapping, address, {lines.begin(), lines.end()}});
  return locations_.append(hash);
}

std::uint32_t ProfileBuilder::add_named_location(std::string_view name) {
  const ProfileLine line{add_function(name), 0};
  return add_location(kNoMapping, {}, std::span(&line, 1));
}

ProfileLabel ProfileBuilder::text_label(std::string_view key, std::string_view text) {
  return {intern(key), intern(text), 0, 0};
}

ProfileLabel ProfileBuilder::number_label(std::string_view key, std::int64_t number, std::string_view unit) {
  return {intern(key), 0, number, intern(unit)};
}

}  // namespace ddprof
