#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/foreign_file.hpp"
#include "base/frame.hpp"
#include "process/file_registry.hpp"
#include "session/file_guard.hpp"
#include "session/kernel_names.hpp"
#include "symbol/jit_dump.hpp"
#include "symbol/jit_names.hpp"
#include "symbol/start_functions.hpp"
#include "symbol/symbol_table.hpp"
#include "unwind/function_ranges.hpp"
#include "unwind/swept_functions.hpp"

namespace ddprof {

// Names that cost next to nothing: from the symbol table of the file itself, what a JIT compiler tells of its
// code, the kernel's symbols. Code without a name is called by where its function or its mapping begins. One
// thread's alone; the caches outlive periods.
class FrameNames {
 public:
  struct Name {
    std::string readable;
    std::string linker;      // as in the symbol table
    bool is_symbol = false;  // not only a place in a file
    std::string file{};      // source, where a JIT compiler told it
    std::uint32_t line = 0;
  };

  // Without `is_enabled` only the kernel's code has names.
  FrameNames(bool is_enabled, const std::string& cache_folder, const FileGuard& guard = {})
      : is_enabled_(is_enabled), guard_(guard), kernel_(cache_folder) {}

  // What takes long, at once: the symbols of a file are read once for all of its frames.
  void name_all(std::span<const Frame> frames, const CodeFiles& files);
  // `file` is the CodeFile of frame.file, null without one. Lives until the next call.
  const Name& name(const Frame& frame, const CodeFile* file);
  // Among all files of a period are those in which JIT compilers tell of their code, and among its mappings
  // those in which that code is.
  void use_generated_code(const CodeFiles& files, std::span<const CodeMapping> mappings);

  // Why a symbol table, or what a JIT compiler wrote, was refused; empty when nothing was.
  [[nodiscard]] std::string problem(FileId id) const;

  // Between periods: what is cheap to make again is dropped beyond a budget, and all about files that are not
  // among these any more.
  void trim(const CodeFiles& files);

 private:
  // Of a file with code that no symbol covers.
  struct Functions {
    FunctionRanges ranges;
    StartFunctions starts;
    SweptFunctions swept;  // between the ranges
  };
  struct Symbols {
    std::optional<Functions> functions;
    std::optional<JitNames> jit_map;
    std::unique_ptr<JitDump> jit_dump;  // read on as it grows
    std::string problem;                // what was refused, and why
    bool is_fresh = false;              // what a JIT compiler wrote has been read for this period
    bool has_read_functions = false;    // once is enough
  };

  Symbols& generated_symbols(FileId id, const CodeFile& file);
  Result<void> read_generated(Symbols& symbols, const CodeFile& file);
  std::optional<Name> jit_name(std::uint64_t address, FileId id, const CodeFile& file);
  void read_functions(Symbols& symbols, const CodeFile& file);
  std::optional<std::string> function_name(std::uint64_t address, Symbols& symbols, const CodeFile& file);
  [[nodiscard]] std::string mapping_name(const Frame& frame) const;
  // All of that file, and none of them twice.
  void name_in_file(std::vector<Frame> frames, const CodeFile& file);
  Name place_name(const Frame& frame, const CodeFile& file);
  Name generated_name(const Frame& frame, const CodeFile* file);
  Name make_name(const Frame& frame, const CodeFile* file);
  Name kernel_name(std::uint64_t address);

  bool is_enabled_;
  PatientOpener opener_;  // of perf maps
  FileGuard guard_;
  absl::flat_hash_map<Frame, Name> names_;
  Name unstable_;                                        // of JIT code, which comes and goes
  absl::flat_hash_map<std::uint32_t, Symbols> symbols_;  // by FileId
  absl::flat_hash_map<std::int32_t, std::shared_ptr<const CodeFile>> dumps_;  // by process
  std::vector<CodeMapping> generated_;  // of JIT compilers, by file and start
  KernelNames kernel_;
};

}  // namespace ddprof
