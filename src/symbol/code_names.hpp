#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

// One function at an address, ready to be shown. Texts live as long as the CodeNames they come from.
struct NamedCall {
  std::string_view linker_name;
  std::string_view name;  // readable
  std::string_view file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t start_line = 0;
};

// What debug information says about the addresses of one file that were asked for, cached so that it is read
// once: in memory, and as an image in a file by build id. An address about which nothing is known is cached
// too. Images are foreign bytes: nothing in them is believed.
class CodeNames {
 public:
  // What one file may hold, in memory and on disk. Addresses beyond are read from debug information each
  // time.
  static constexpr std::size_t kMaxImageBytes = std::size_t{16} << 20;

  CodeNames() = default;

  // Fails when it is damaged, of another version, or of another key.
  static Result<CodeNames> from_image(MappedRegion image, std::string_view key);
  // Everything that fits, what was added last first. Sorted: equal content gives equal bytes.
  [[nodiscard]] std::vector<std::byte> image(std::string_view key) const;

  // Innermost call first. Readable names are made here.
  void add(std::uint64_t address, std::span<const SourceCall> calls);
  // Innermost first; empty when nothing is known; none when this address was never asked for.
  [[nodiscard]] std::optional<std::vector<NamedCall>> find(std::uint64_t address) const;
  // Whether it was asked for.
  [[nodiscard]] bool contains(std::uint64_t address) const {
    return added_.contains(address) || find_cached(address).has_value();
  }

  [[nodiscard]] std::size_t size() const { return added_.size() + cached_count_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Entry {
    std::uint64_t address = 0;
    std::uint32_t first = 0;  // into calls
    std::uint32_t count = 0;
  };
  struct Call {
    std::uint32_t linker_name = 0, name = 0, file = 0;  // into texts
    std::uint32_t line = 0, column = 0, start_line = 0;
  };
  class Writer;
  struct TextHash {  // Debian's absl has a string_view of its own
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::uint32_t keep_text(std::string_view text);
  std::uint32_t readable(std::uint32_t linker_name, const SourceCall& call);
  [[nodiscard]] std::optional<Entry> find_cached(std::uint64_t address) const;
  [[nodiscard]] Entry cached_entry(std::size_t index) const;
  [[nodiscard]] std::vector<NamedCall> cached_calls(const Entry& entry) const;
  [[nodiscard]] std::vector<NamedCall> added_calls(const Entry& entry) const;

  // From the image.
  MappedRegion cached_;
  std::size_t cached_count_ = 0;
  std::span<const std::byte> cached_entries_, cached_calls_, cached_texts_;

  // Since then.
  absl::flat_hash_map<std::uint64_t, Entry> added_;
  std::vector<Call> calls_;
  std::string texts_ = std::string(1, '\0');  // zero-terminated, "" at 0
  absl::flat_hash_map<std::string, std::uint32_t, TextHash, std::equal_to<>> text_index_;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> readable_index_;  // by linker name
};

}  // namespace ddprof
