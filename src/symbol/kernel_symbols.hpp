#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

struct KernelSymbol {
  std::string_view name;
  std::string_view module;  // "[nf_tables]"; empty: the kernel itself
  std::uint64_t start = 0;
};

// The code symbols of the running kernel, from the text of /proc/kallsyms. Empty when the kernel hides its
// addresses (kptr_restrict: all are zero).
class KernelSymbols {
 public:
  KernelSymbols() = default;

  static KernelSymbols parse(std::string_view kallsyms);
  // The kernel's own symbols, without those of modules, as bytes for a cache; `key` says of which kernel.
  [[nodiscard]] std::vector<std::byte> image(std::string_view key) const;
  static Result<KernelSymbols> from_image(MappedRegion image, std::string_view key);

  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  friend class KernelSymbolsParser;

  // Where something begins. kallsyms gives no sizes: a symbol ends where the next begins, be it code or data.
  struct Entry {
    std::uint64_t start = 0;
    std::uint32_t name = 0;  // offset into names_, zero-terminated; 0: data
    std::uint32_t module = 0;
  };
  struct ImageHeader;

  [[nodiscard]] std::string_view name_at(std::uint32_t offset) const;

  std::vector<Entry> own_entries_;
  std::vector<char> own_names_;
  MappedRegion image_;
  std::span<const Entry> entries_;  // by address, one for each; in own_entries_ or in image_
  std::span<const char> names_;
};

// Takes the text in pieces, so that its 10 MB are never held as a whole.
class KernelSymbolsParser {
 public:
  KernelSymbolsParser();

  void add(std::string_view piece);
  [[nodiscard]] KernelSymbols finish() &&;

 private:
  using Entry = KernelSymbols::Entry;

  void add_line(std::string_view text);
  std::uint32_t intern(std::string_view name);
  void sort();
  void drop_aliases();

  std::string line_;  // the beginning of one whose rest comes with the next piece
  std::vector<Entry> entries_;
  std::vector<char> names_;
  std::uint32_t last_module_ = 0;
};

}  // namespace ddprof
