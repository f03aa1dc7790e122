#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/frame.hpp"
#include "process/file_registry.hpp"
#include "profile/profile.hpp"
#include "session/closed_period.hpp"
#include "symbol/kernel_names.hpp"
#include "symbol/perf_map.hpp"
#include "symbol/symbol_table.hpp"

namespace ddprof {

struct NamerOptions {
  bool is_enabled = true;    // false: only the kernel's code has names
  std::string cache_folder;  // see KernelNames; empty: none
};

// Gives frames their names, once per distinct address, and turns a closed period into the profile model.
// Lives on the finishing thread; its caches outlive periods.
class Namer {
 public:
  explicit Namer(const NamerOptions& options)
      : is_enabled_(options.is_enabled), kernel_(options.cache_folder) {}

  Profile name(const ClosedPeriod& period);

  struct Name {
    std::string readable;
    std::string linker;  // as in the symbol table
    bool is_symbol = false;
  };
  // One frame. `file` is the CodeFile of frame.file, null without one.
  Name name(const Frame& frame, const CodeFile* file);

 private:
  struct Symbols {
    std::optional<SymbolTable> table;
    std::optional<PerfMap> jit;
  };

  Symbols& symbols_of(FileId id, const CodeFile& file);
  Name user_name(const Frame& frame, const CodeFile* file);
  Name kernel_name(std::uint64_t address);
  void trim_caches();

  bool is_enabled_;
  absl::flat_hash_map<Frame, Name> names_;
  absl::flat_hash_map<std::uint32_t, Symbols> symbols_;  // by FileId, of the period at hand
  KernelNames kernel_;
};

}  // namespace ddprof
