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

// The code symbols of the running kernel, from the text of /proc/kallsyms.
class KernelSymbols {
 public:
  KernelSymbols() = default;

  // Empty when the kernel hides its addresses (kptr_restrict: all are zero).
  static KernelSymbols parse(std::string_view kallsyms);
  // The same from the file, which is never held as a whole.
  static Result<KernelSymbols> read(const std::string& path);
  // The kernel's own symbols, without those of modules, as bytes to keep; `key` says of which kernel.
  [[nodiscard]] std::vector<std::byte> image(std::string_view key) const;
  static Result<KernelSymbols> from_image(MappedRegion image, std::string_view key);

  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  friend class KernelSymbolsBuilder;

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

}  // namespace ddprof
