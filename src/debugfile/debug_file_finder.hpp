#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.hpp"
#include "base/foreign_file.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "elf/debug_links.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// An ELF file that was opened for what it tells about another one.
struct DebugImage {
  std::string root;  // through which it was reached: "/proc/123/root", or empty
  std::string path;  // below that
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::optional<std::uint32_t> owner;  // its only writer; none: others could write it too
  MappedRegion region;
  ElfFile file;

  [[nodiscard]] std::string place() const { return root + path; }
  [[nodiscard]] bool is_same_file(const DebugImage& other) const {
    return device == other.device && inode == other.inode;
  }
};

Result<DebugImage> open_debug_image(PatientOpener& opener, const FileRequest& request);

// Names and lines for people who debug; stripped files have neither.
[[nodiscard]] bool has_debug_info(const ElfFile& file);
[[nodiscard]] bool has_symbol_table(const ElfFile& file);

// "/usr/bin" of "/usr/bin/cat"; empty for what lies in "/".
[[nodiscard]] std::string folder_of(const std::string& path);
[[nodiscard]] std::string base_name_of(const std::string& path);

// The file whose code is to be named.
struct Binary {
  const ElfFile* file = nullptr;  // null: it could not be opened, and is known by its build id alone
  BuildId build_id;
  std::string path;  // as the target sees it
  std::string root;  // through which its mount namespace is reached: "/proc/123/root"; empty: it is ours
  std::optional<std::uint32_t> owner{};  // its only writer; none: others could write it too
  std::optional<UserRights> rights{};    // with which the paths that it names are opened; none: ours
};

// Finds the files that debug information was moved to, where systems keep them: below the root of the target,
// below our own, in the cache of debuginfod. Everything found must prove that it belongs to the binary: by
// the same build id, or the checksum in the link, and by its owner: the user who wrote it could have written
// the binary too, or is root, or us. Below our own root nothing but a build id is looked for on behalf of
// another one, and names that a file holds are opened with the rights of who wrote that file.
class DebugFileFinder {
 public:
  // What was in the way is worth telling: files of another build, file systems that hang.
  using Problems = std::vector<std::string>;

  struct Places {
    std::string own_root;          // before all paths of our own; empty but in tests
    std::string debuginfod_cache;  // empty: none
  };
  // The opener must outlive this.
  DebugFileFinder(PatientOpener& opener, Places places) : opener_(opener), places_(std::move(places)) {}

  // The separate debug file: the first with debug information, else the first with a symbol table.
  std::optional<DebugImage> find_separate(const Binary& binary, Problems& problems);
  // What dwz moved out of `from`, which is the binary or its separate debug file.
  std::optional<DebugImage> find_supplementary(const Binary& from, const SupplementaryLink& link,
                                               Problems& problems);
  // The first of these paths that is an ELF file, as `from` names them.
  std::optional<DebugImage> find_first(const Binary& from, const std::vector<std::string>& paths,
                                       Problems& problems);

 private:
  using Candidates = std::vector<FileRequest>;

  void add_by_build_id(Candidates& candidates, const Binary& binary, const BuildId& build_id) const;
  // What `from` is to be believed about.
  std::optional<DebugImage> open(const Binary& from, const FileRequest& candidate, Problems& problems);
  std::optional<DebugImage> find_linked(const Binary& binary, Problems& problems);
  std::optional<DebugImage> find_by_build_id(const Binary& from, const Candidates& candidates,
                                             const BuildId& build_id, Problems& problems);

  PatientOpener& opener_;
  Places places_;
};

}  // namespace ddprof
