#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::uint64_t start = 0;
    std::uint32_t size = 0;
    std::uint32_t name = 0;  // offset into names_, zero-terminated
    std::uint32_t module = 0;
  };

  std::vector<Entry> entries_;
  std::string names_;
};

}  // namespace ddprof
