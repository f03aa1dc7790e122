#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// One executable mapping of a process. `bias` turns a run-time address into the ELF address of its file:
// elf = run-time - bias. It is known when the file is open: see FileRegistry::resolved.
struct CodeMapping {
  Address start{};
  Address end{};
  std::uint64_t file_offset = 0;
  std::uint64_t bias = 0;
  FileId file = FileId::none;

  [[nodiscard]] bool contains(Address address) const { return start <= address && address < end; }
};

// The executable mappings of one process, sorted and without overlap: a new mapping replaces what it covers,
// as mmap(MAP_FIXED) does. munmap leaves no record in a perf stream, so stale mappings last until they are
// covered.
class AddressSpace {
 public:
  void map(const CodeMapping& mapping);
  [[nodiscard]] const CodeMapping* find(Address address) const;
  [[nodiscard]] const std::vector<CodeMapping>& mappings() const { return mappings_; }

 private:
  std::vector<CodeMapping> mappings_;
};

// Several times what vm.max_map_count allows by default.
inline constexpr std::size_t kMaxMapsBytes = std::size_t{64} << 20U;

// One line of /proc/PID/maps. `path` points into the text that was parsed.
struct ProcMapsLine {
  Address start{};
  Address end{};
  bool is_executable = false;
  std::uint64_t file_offset = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::string_view path{};
};

// Parses one line without its newline; none when it is not of the kernel's form.
std::optional<ProcMapsLine> parse_proc_maps_line(std::string_view line);

// Executable lines of a whole maps file, in the kernel's (ascending) order.
std::vector<ProcMapsLine> parse_executable_maps(std::string_view text);

}  // namespace ddprof
