#include "encode/firefox_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "encode/escaped_text.hpp"
#include "encode/firefox_categories.hpp"

namespace ddprof {

std::string breakpad_id(std::string_view build_id_hex) {
  // A GUID is a 32-bit number, two of 16 bits, and 8 bytes: the numbers are printed most significant first.
  constexpr std::array<std::size_t, 16> kOrder{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string id;
  for (const std::size_t byte : kOrder) {
    for (const std::size_t digit : {2 * byte, 2 * byte + 1}) {
      const bool is_digit =
          digit < build_id_hex.size() && std::isxdigit(static_cast<unsigned char>(build_id_hex[digit])) != 0;
      id += is_digit ? static_cast<char>(std::toupper(static_cast<unsigned char>(build_id_hex[digit]))) : '0';
    }
  }
  return id + '0';
}

namespace {

using Column = FirefoxTables::Column;

constexpr std::int64_t kNone = -1;
constexpr std::int64_t kLibraryResource = 1;
// JavaScript's numbers are exact up to here. Addresses of no file may be larger; nothing reads them.
constexpr std::uint64_t kMaxExact = std::uint64_t{1} << 53;

// Within the file, as far as a profile knows: it has the offset of each mapping, not the file's headers.
std::int64_t address_in_lib(const Profile& profile, const ProfileLocation& location) {
  if (location.mapping == kNoMapping) return kNone;
  const ProfileMapping& mapping = profile.mappings[location.mapping];
  const std::uint64_t address = location.address - mapping.start + mapping.file_offset;
  return address < kMaxExact ? static_cast<std::int64_t>(address) : kNone;
}

std::int64_t or_null(std::int64_t number) { return number > 0 ? number : FirefoxTables::kNull; }

Column repeated(std::int64_t value, std::size_t count) { return Column(count, value); }

void append_member(std::string& out, std::string_view key, std::string_view json) {
  if (out.back() != '{') out += ",\n";
  fmt::format_to(std::back_inserter(out), "\"{}\":{}", key, json);
}

// {"length":2,"frame":[0,1],…}
std::string table_json(std::size_t length,
                       std::initializer_list<std::pair<std::string_view, const Column&>> columns,
                       std::string_view extra = {}) {
  std::string out = fmt::format("{{\"length\":{}", length);
  for (const auto& [name, column] : columns) append_firefox_column(out, name, column);
  out += extra;
  return out + '}';
}

std::string constant_json(std::string_view name, std::string_view value, std::size_t count) {
  std::string out = fmt::format(",\"{}\":[", name);
  for (std::size_t at = 0; at < count; ++at) {
    if (at != 0) out += ',';
    out += value;
  }
  return out + ']';
}

}  // namespace

void append_firefox_column(std::string& out, std::string_view name, const Column& column) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
  append_json_array(out, column, [](std::string& text, std::int64_t number) {
    if (number == FirefoxTables::kNull) {
      text += "null";
    } else {
      fmt::format_to(std::back_inserter(text), "{}", number);
    }
  });
}

FirefoxTables::FirefoxTables(const Profile& profile) : profile_(profile), names_(profile) {
  for (std::uint32_t index = 0; index < profile.locations.size(); ++index) add_location(index);
}

std::int64_t FirefoxTables::add_string(std::string_view text) {
  const auto [entry, is_new] = string_index_.try_emplace(std::string(text), strings_.size());
  if (is_new) strings_.emplace_back(text);
  return entry->second;
}

std::int64_t FirefoxTables::add_lib(const ProfileLocation& location) {
  if (location.mapping == kNoMapping) return kNone;
  const ProfileMapping& mapping = profile_.mappings[location.mapping];
  const auto [entry, is_new] =
      lib_index_.try_emplace(std::pair(mapping.path, mapping.build_id), libs_.size());
  if (is_new)
    libs_.push_back({mapping.path, mapping.build_id, add_string(base_name(profile_.text(mapping.path)))});
  return entry->second;
}

std::int64_t FirefoxTables::add_source(StringIndex file) {
  if (file == 0) return kNull;
  const auto [entry, is_new] = source_index_.try_emplace(file, sources_.size());
  if (is_new) sources_.push_back(add_string(profile_.text(file)));
  return entry->second;
}

std::int64_t FirefoxTables::add_function(std::uint32_t frame, std::int64_t lib, StringIndex file,
                                         std::int64_t start_line) {
  const auto [entry, is_new] =
      function_index_.try_emplace(std::tuple(frame, lib, file, start_line), functions_.name.size());
  if (!is_new) return entry->second;
  functions_.name.push_back(add_string(names_[frame].name));
  functions_.resource.push_back(lib);  // resource i is lib i
  functions_.source.push_back(add_source(file));
  functions_.line.push_back(or_null(start_line));
  return entry->second;
}

// Where a symbol begins is not in a profile: the lowest of its addresses that was seen stands for it.
std::int64_t FirefoxTables::add_native_symbol(std::uint32_t frame, std::int64_t lib, std::int64_t address) {
  if (lib == kNone || address == kNone) return kNull;
  const auto [entry, is_new] = symbol_index_.try_emplace(std::pair(frame, lib), symbols_.lib.size());
  if (is_new) {
    symbols_.lib.push_back(lib);
    symbols_.address.push_back(address);
    symbols_.name.push_back(add_string(names_[frame].name));
  }
  std::int64_t& lowest = symbols_.address[static_cast<std::size_t>(entry->second)];
  lowest = std::min(lowest, address);
  return entry->second;
}

std::int64_t FirefoxTables::category_of(const ProfileLocation& location, const NamedFrame& frame) const {
  const std::string_view path =
      location.mapping == kNoMapping ? "" : profile_.text(profile_.mappings[location.mapping].path);
  return static_cast<std::int64_t>(firefox_category(path, frame.name, frame.is_marker));
}

// Calls that share an address are one location: innermost first here, and the outermost has depth 0.
void FirefoxTables::add_location(std::uint32_t index) {
  const ProfileLocation& location = profile_.locations[index];
  const auto names = names_.frames(index);
  const std::int64_t lib = add_lib(location);
  const std::int64_t address = address_in_lib(profile_, location);
  const std::int64_t symbol =
      names_[names.back()].is_marker ? kNull : add_native_symbol(names.back(), lib, address);
  first_frame_.push_back(static_cast<std::int64_t>(frames_.function.size()));
  for (std::size_t at = 0; at < names.size(); ++at) {
    const ProfileLine* line = at < location.lines.size() ? &location.lines[at] : nullptr;
    const ProfileFunction function = line != nullptr ? profile_.functions[line->function] : ProfileFunction{};
    frames_.function.push_back(add_function(names[at], lib, function.file, function.start_line));
    frames_.address.push_back(address);
    frames_.inline_depth.push_back(static_cast<std::int64_t>(names.size() - 1 - at));
    frames_.category.push_back(category_of(location, names_[names[at]]));
    frames_.native_symbol.push_back(symbol);
    frames_.line.push_back(line != nullptr ? or_null(line->line) : kNull);
    frames_.column.push_back(line != nullptr ? or_null(line->column) : kNull);
  }
}

std::int64_t FirefoxTables::stack(const ProfileSample& sample) {
  std::int64_t parent = kNull;
  for (auto location = sample.locations.rbegin(); location != sample.locations.rend(); ++location) {
    const std::int64_t first = first_frame_[*location];
    for (auto at = static_cast<std::int64_t>(names_.frames(*location).size()); at-- > 0;) {
      const auto next = static_cast<std::int64_t>(stacks_.frame.size());
      const auto [entry, is_new] = stack_index_.try_emplace(std::pair(parent, first + at), next);
      if (is_new) {
        stacks_.frame.push_back(first + at);
        stacks_.prefix_offset.push_back(parent == kNull ? 0 : next - parent);
      }
      parent = entry->second;
    }
  }
  return parent;
}

std::string FirefoxTables::libs_json() const {
  std::string out;
  append_json_array(out, libs_, [&](std::string& text, const Lib& lib) {
    const std::string_view path = profile_.text(lib.path), build_id = profile_.text(lib.build_id);
    text += "{\"arch\":\"\",\"name\":";
    append_json_string(text, base_name(path));
    text += ",\"path\":";
    append_json_string(text, path);
    text += ",\"debugName\":";
    append_json_string(text, base_name(path));
    text += ",\"debugPath\":";
    append_json_string(text, path);
    fmt::format_to(std::back_inserter(text), ",\"breakpadId\":\"{}\",\"codeId\":", breakpad_id(build_id));
    if (build_id.empty()) {
      text += "null}";
    } else {
      append_json_string(text, build_id);
      text += '}';
    }
  });
  return out;
}

std::string FirefoxTables::frame_table_json() const {
  const std::size_t count = frames_.function.size();
  return table_json(count, {{"func", frames_.function},
                            {"address", frames_.address},
                            {"inlineDepth", frames_.inline_depth},
                            {"category", frames_.category},
                            {"subcategory", repeated(0, count)},
                            {"nativeSymbol", frames_.native_symbol},
                            {"innerWindowID", repeated(0, count)},
                            {"line", frames_.line},
                            {"column", frames_.column},
                            {"originalLocation", repeated(kNull, count)}});
}

std::string FirefoxTables::function_table_json() const {
  const std::size_t count = functions_.name.size();
  return table_json(count,
                    {{"name", functions_.name},
                     {"resource", functions_.resource},
                     {"source", functions_.source},
                     {"lineNumber", functions_.line},
                     {"columnNumber", repeated(kNull, count)},
                     {"originalLocation", repeated(kNull, count)}},
                    constant_json("isJS", "false", count) + constant_json("relevantForJS", "false", count));
}

std::string FirefoxTables::resource_table_json() const {
  const std::size_t count = libs_.size();
  Column names, numbers;
  for (const Lib& lib : libs_) {
    names.push_back(lib.name);
    numbers.push_back(static_cast<std::int64_t>(numbers.size()));
  }
  return table_json(count, {{"name", names},
                            {"host", repeated(kNull, count)},
                            {"type", repeated(kLibraryResource, count)},
                            {"lib", numbers}});
}

std::string FirefoxTables::native_symbols_json() const {
  const std::size_t count = symbols_.lib.size();
  return table_json(count, {{"libIndex", symbols_.lib},
                            {"address", symbols_.address},
                            {"name", symbols_.name},
                            {"functionSize", repeated(kNull, count)}});
}

std::string FirefoxTables::sources_json() const {
  const std::size_t count = sources_.size();
  return table_json(count, {{"id", repeated(kNull, count)},
                            {"filename", sources_},
                            {"startLine", repeated(1, count)},
                            {"startColumn", repeated(1, count)},
                            {"sourceMapURL", repeated(kNull, count)},
                            {"content", repeated(kNull, count)}});
}

std::string FirefoxTables::shared_json() const {
  std::string strings;
  append_json_array(strings, strings_,
                    [](std::string& out, const std::string& text) { append_json_string(out, text); });
  std::string out = "{";
  append_member(out, "stringArray", strings);
  append_member(
      out, "stackTable",
      table_json(stacks_.frame.size(), {{"frame", stacks_.frame}, {"prefixOffset", stacks_.prefix_offset}}));
  append_member(out, "frameTable", frame_table_json());
  append_member(out, "funcTable", function_table_json());
  append_member(out, "resourceTable", resource_table_json());
  append_member(out, "nativeSymbols", native_symbols_json());
  append_member(out, "sources", sources_json());
  append_member(out, "sourceLocationTable", "{\"length\":0,\"source\":[],\"line\":[],\"column\":[]}");
  return out + '}';
}

}  // namespace ddprof
