#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "profile/profile_view.hpp"

namespace ddprof {

// The tables that all threads of a Firefox profile share, as columns of numbers. kNull is JSON's null.
class FirefoxTables {
 public:
  using Column = std::vector<std::int64_t>;
  static constexpr std::int64_t kNull = std::numeric_limits<std::int64_t>::min();

  explicit FirefoxTables(const Profile& profile);

  // The stack of a sample: an index into the stack table, kNull when it has no frames.
  std::int64_t stack(const ProfileSample& sample);

  // "libs":[…] and "shared":{…}, when all stacks are known.
  [[nodiscard]] std::string libs_json() const;
  [[nodiscard]] std::string shared_json() const;

 private:
  struct Lib {
    StringIndex path, build_id;
    std::int64_t name;  // in the string array
  };

  void add_location(std::uint32_t index);
  std::int64_t add_lib(const ProfileLocation& location);
  std::int64_t add_function(std::uint32_t frame, std::int64_t lib, StringIndex file, std::int64_t start_line);
  std::int64_t add_native_symbol(std::uint32_t frame, std::int64_t lib, std::int64_t address);
  std::int64_t add_string(std::string_view text);
  std::int64_t add_source(StringIndex file);
  [[nodiscard]] std::string frame_table_json() const;
  [[nodiscard]] std::string function_table_json() const;
  [[nodiscard]] std::string resource_table_json() const;
  [[nodiscard]] std::string native_symbols_json() const;
  [[nodiscard]] std::string sources_json() const;
  [[nodiscard]] std::int64_t category_of(const ProfileLocation& location, const NamedFrame& frame) const;

  const Profile& profile_;
  FrameTable names_;

  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, std::int64_t> string_index_;

  std::vector<Lib> libs_;
  absl::flat_hash_map<std::pair<StringIndex, StringIndex>, std::int64_t> lib_index_;

  struct {
    Column frame, prefix_offset;
  } stacks_;
  absl::flat_hash_map<std::pair<std::int64_t, std::int64_t>, std::int64_t> stack_index_;  // parent, frame

  struct {
    Column function, address, inline_depth, category, native_symbol, line, column;
  } frames_;
  std::vector<std::int64_t> first_frame_;  // by location: its innermost call

  struct {
    Column name, resource, source, line;
  } functions_;
  absl::flat_hash_map<std::tuple<std::uint32_t, std::int64_t, StringIndex, std::int64_t>, std::int64_t>
      function_index_;

  struct {
    Column lib, address, name;
  } symbols_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> symbol_index_;

  Column sources_;  // file names
  absl::flat_hash_map<StringIndex, std::int64_t> source_index_;
};

// Appends a column, null where it has none.
void append_firefox_column(std::string& out, std::string_view name, const FirefoxTables::Column& column);

// How symbol servers of the Breakpad family name a file: the first 16 bytes of its build id read as a
// little-endian GUID, in capitals, and an age, which is 0 for ELF files. Bytes that a short or missing build
// id has not are zero.
std::string breakpad_id(std::string_view build_id_hex);

}  // namespace ddprof
