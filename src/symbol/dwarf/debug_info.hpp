#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/build_id.hpp"
#include "base/frame.hpp"
#include "base/result.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// The other files that debug information is spread over. What is handed out lives as long as this; null:
// there is none, and what it would have told stays unknown.
class DebugFileSource {
 public:
  virtual ~DebugFileSource() = default;
  // What dwz moved out of several files (.gnu_debugaltlink, .debug_sup). `path` is as recorded.
  virtual const ElfFile* supplementary(std::string_view path, const BuildId& build_id) = 0;
  // Split DWARF: the .dwo of one unit (`name` as recorded, relative to `directory` unless absolute), and the
  // .dwp that holds those of the whole program.
  virtual const ElfFile* split_unit(std::string_view directory, std::string_view name) = 0;
  virtual const ElfFile* package() = 0;
};

// Lines and inlined calls of one ELF file with debug information: DWARF 2 to 5. Foreign bytes: whatever they
// say, time and memory are bounded, and what can be read is given.
class DebugInfo {
 public:
  using Take = std::function<void(std::uint64_t address, std::span<const SourceCall> calls)>;
  using KeepGoing = std::function<bool()>;

  // How much memory, or room on a disk, what is packed in the file would take.
  static std::uint64_t uncompressed_bytes(const ElfFile& file);
  // Fails with `not_found` when the file has no debug information, with `exhausted` when that would have to
  // be unpacked and is too large. `file` and `others` must outlive it.
  static Result<DebugInfo> open(const ElfFile& file, DebugFileSource& others, const ReadLimits& limits = {});

  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;
  ~DebugInfo();

  // Calls take() for each of the addresses that the debug information covers; they must be sorted. Texts live
  // until take() returns. Asks keep_going() between units, and stops at a no. Returns how many addresses from
  // the front were dealt with.
  std::size_t find(std::span<const std::uint64_t> addresses, const Take& take, const KeepGoing& keep_going);

  // What was wrong with what was read, for people: empty when nothing was.
  [[nodiscard]] std::string_view problem() const;
  [[nodiscard]] std::size_t memory_bytes() const;
  // Gives back pages of what was unpacked onto a disk.
  void drop_pages() const;

 private:
  class Reader;
  explicit DebugInfo(std::unique_ptr<Reader> reader);
  std::unique_ptr<Reader> reader_;
};

}  // namespace ddprof
