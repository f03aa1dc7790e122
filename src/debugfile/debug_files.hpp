#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.hpp"
#include "debugfile/debug_file_finder.hpp"
#include "elf/elf_file.hpp"
#include "symbol/dwarf/debug_info.hpp"

namespace ddprof {

// Where the names of a file's functions come from.
enum class SymbolOrigin { none, itself, separate, mini_debug_info };

// All files that can name the code of one binary, open as long as this lives. For one thread.
class DebugFiles final : public DebugFileSource {
 public:
  // Split DWARF has a file per source file. They are mapped, and the kernel allows 65,530 mappings in all.
  static constexpr std::size_t kMaxFiles = 8192;

  // Looks for them. The finder and the binary's ElfFile must outlive this.
  DebugFiles(DebugFileFinder& finder, Binary binary, const ReadLimits& limits = {});

  // The file with lines and inlined calls: the binary itself or its separate debug file. Null: none has them.
  [[nodiscard]] const ElfFile* with_debug_info() const { return with_debug_info_; }
  // The file with the fullest symbol table. Null: dynamic symbols are all there is.
  [[nodiscard]] const ElfFile* with_symbol_table() const { return with_symbol_table_; }
  [[nodiscard]] SymbolOrigin symbol_origin() const { return symbol_origin_; }
  // Null: none was found, or none was needed.
  [[nodiscard]] const DebugImage* separate() const { return separate_ ? &*separate_ : nullptr; }

  const ElfFile* supplementary(std::string_view path, const BuildId& build_id) override;
  const ElfFile* split_unit(std::string_view directory, std::string_view name) override;
  const ElfFile* package() override;

  // Build ids of files that are nowhere here: what debuginfod could be asked for.
  [[nodiscard]] const std::vector<BuildId>& missing() const { return missing_; }
  // What was refused and why, for people; empty when all went well.
  [[nodiscard]] std::string problem() const;
  // Unpacked, not mapped.
  [[nodiscard]] std::size_t memory_bytes() const { return mini_debug_info_.capacity(); }

 private:
  using Find = std::function<std::optional<DebugImage>()>;

  void choose_debug_info();
  void choose_symbol_table(const ReadLimits& limits);
  // The file with debug information, which names others: the binary, or its separate debug file.
  [[nodiscard]] Binary naming_file() const;
  const ElfFile* once(const std::string& key, const Find& find);

  DebugFileFinder& finder_;
  Binary binary_;
  DebugFileFinder::Problems problems_;
  std::optional<DebugImage> separate_;
  std::vector<std::byte> mini_debug_info_;
  std::optional<ElfFile> mini_file_;
  const ElfFile* with_debug_info_ = nullptr;
  const ElfFile* with_symbol_table_ = nullptr;
  SymbolOrigin symbol_origin_ = SymbolOrigin::none;
  // By what was asked for; null: it is not there.
  std::map<std::string, std::unique_ptr<DebugImage>> others_;
  std::vector<BuildId> missing_;
  std::size_t open_files_ = 0;
  bool is_full_ = false;
};

}  // namespace ddprof
