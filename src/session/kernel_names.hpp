#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbol/kernel_symbols.hpp"

namespace ddprof {

// Names of kernel code. Reading /proc/kallsyms takes the kernel some 40 ms, more than all the rest of a short
// run, so what was read is cached in a file for other runs until the machine is started anew. Symbols of
// modules come and go and are not in it: an address that it does not know is looked up in /proc/kallsyms.
class KernelNames {
 public:
  // Caches nothing without a folder, or where the folder is not the user's own.
  explicit KernelNames(std::string cache_folder, std::string kallsyms = "/proc/kallsyms")
      : cache_folder_(std::move(cache_folder)), kallsyms_(std::move(kallsyms)) {}

  [[nodiscard]] std::optional<KernelSymbol> find(std::uint64_t address);

 private:
  enum class Source { none, cache, kernel };

  void load();
  void read_kernel();

  std::string cache_folder_;
  std::string kallsyms_;
  KernelSymbols symbols_;
  Source source_ = Source::none;
};

}  // namespace ddprof
