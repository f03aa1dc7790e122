#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.hpp"
#include "base/foreign_file.hpp"
#include "base/frame.hpp"
#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "elf/elf_file.hpp"
#include "process/address_space.hpp"
#include "process/file_provider.hpp"
#include "process/file_threads.hpp"

namespace ddprof {

inline constexpr std::string_view kGeneratedCodePath = "[anonymous code]";

// A distinct file with code, seen in any process of this run. Immutable once registered, and shared with the
// thread that names frames: the image is mapped, so it stays readable when the file is deleted or its process
// ends.
struct CodeFile {
  enum class Kind : std::uint8_t {
    elf,       // `image` and `elf` are set
    vdso,      // the kernel's, read from memory: the same on every process of this kernel
    jit,       // anonymous executable memory of process `pid`; ELF addresses are run-time addresses
    jit_dump,  // what the JIT compiler of process `pid` tells of its code: `dump` is set
    opening,   // not open yet: frames are at offsets of the file, as in one that cannot be opened
    unopened,  // gone, replaced, not ELF, or not permitted: `problem` says which
  };

  Kind kind = Kind::unopened;
  std::string path;
  BuildId build_id{};
  Pid pid{};                                 // whose code it was seen in first
  std::shared_ptr<const TargetRoot> root{};  // below which `path` is; null: below ours
  std::optional<std::uint32_t> owner{};      // its only writer; none: others could write it too
  std::optional<UserRights> rights{};        // with which the paths that it names are opened; none: ours
  std::string problem{};
  MappedRegion image{};
  std::optional<ElfFile> elf{};
  std::optional<JitFile> dump{};

  [[nodiscard]] std::string base_name() const;
  // Of the byte at this offset of the file, as its executable segments have it; none: they do not.
  [[nodiscard]] std::optional<std::uint64_t> elf_address(std::uint64_t file_offset) const;
  // False when the file was written over in place since: it says nothing about the code that ran then.
  [[nodiscard]] bool is_as_opened() const;
  // Whether processes of all users may share what it says: only root could write it, and only
  // root decides what lies beside it.
  [[nodiscard]] bool is_for_all() const { return owner == 0U && root == nullptr; }
  // Under what its names are cached between runs: by build id, which any file can claim,
  // and so by owner too. Empty: not at all.
  [[nodiscard]] std::string cache_key() const;
};

// Files by their id, which no other file ever gets.
class CodeFiles {
 public:
  // Null when it is not there: FileId::none, or forgotten.
  [[nodiscard]] const std::shared_ptr<const CodeFile>& operator[](FileId id) const;
  [[nodiscard]] bool contains(FileId id) const { return files_.contains(to_int(id)); }
  [[nodiscard]] std::size_t size() const { return files_.size(); }
  void add(FileId id, CodeFile file);
  void erase(FileId id) { files_.erase(to_int(id)); }
  template <typename Visit>  // of id and file
  void for_each(Visit visit) const {
    for (const auto& [id, file] : files_) visit(static_cast<FileId>(id), file);
  }

 private:
  absl::flat_hash_map<std::uint32_t, std::shared_ptr<const CodeFile>> files_;
};

// Every distinct file once, by build id when the kernel told it, else by device, inode and path.
//
// A build id is what the file says of itself, and any user can copy one. So files of the same build id are
// one for processes of all users only if root wrote them, below our own root; for processes of one user if
// that user or root wrote them; and otherwise if they have the same path too. No user's file then says
// anything about another user's code.
//
// A new file has an id at once, and is opened by a thread. Frames in it are at offsets of the file until it
// is open; then it has another id, by which frames are at ELF addresses, and which may be that of a file that
// was known before.
class FileRegistry {
 public:
  // Files that no process maps any more stay known for that many calls of forget_unused(), at most so many of
  // them: programs that run again and again need not be read anew. An open file keeps its place on the disk.
  static constexpr std::uint32_t kKeptPeriods = 10;
  static constexpr std::size_t kMaxUnused = 256;

  // Without threads the caller opens files itself.
  explicit FileRegistry(FileProvider& provider, FileThreads* threads = nullptr)
      : provider_(provider), threads_(threads) {}

  // Begins to open the file when it is new: a short-lived process may be gone a moment later.
  // `user` is who the process was when it was last asked: it holds, and is renewed, until it has ended.
  FileId find_or_open(Pid pid, Address mapping_start, Address mapping_end, const FileIdentity& identity,
                      std::optional<std::uint32_t>& user);
  FileId find_or_open(Pid pid, Address mapping_start, Address mapping_end, const FileIdentity& identity) {
    std::optional<std::uint32_t> unknown;
    return find_or_open(pid, mapping_start, mapping_end, identity, unknown);
  }
  FileId find_or_add_jit(Pid pid);
  // Of 64-bit processes, read from our own address space.
  FileId vdso();
  // Of 32-bit processes, which we do not have ourselves: read from one of them, for all of its user, who
  // could have changed it. `read` gives its bytes; none: the next process is asked.
  FileId vdso_32(std::optional<std::uint32_t> user, const std::function<std::vector<std::byte>()>& read);

  // Takes what has been opened since the last time, after waiting for all of it so long.
  void take_opened(Nanoseconds most_waiting = {});
  // The same for what is mapped there, which is opened before anything else of that user. True: it is open.
  bool open_first(const AddressSpace& space, std::optional<std::uint32_t> user);
  // The same, after waiting for it as long as FileThreads allow, once for each.
  void wait_until_open(const AddressSpace& space, std::optional<std::uint32_t> user);
  // The id by which a file is known now that it is open.
  [[nodiscard]] FileId resolved(FileId id) const;
  // With that id, and the bias.
  [[nodiscard]] CodeMapping resolved(CodeMapping mapping) const;
  // At the ELF address, if it was at an offset of a file that is open now.
  [[nodiscard]] Frame resolved(Frame frame) const;

  [[nodiscard]] const std::shared_ptr<const CodeFile>& file(FileId id) const { return files_[resolved(id)]; }
  [[nodiscard]] const CodeFiles& files() const { return files_; }

  // Processes come and go, and bring new files with them. What is not among `mapped` is forgotten after a
  // while; what one process alone had, generated code and what is written about it, at once.
  void forget_unused(const absl::flat_hash_set<FileId>& mapped);

 private:
  // For whom a key holds: a user's number, or one of these.
  using Scope = std::int64_t;
  static constexpr Scope kAllUsers = -1;
  static constexpr Scope kUnknownUser = -2;  // of a process that is gone

  struct Key {
    Scope scope = kAllUsers;
    BuildId build_id{};
    std::uint32_t device_major = 0, device_minor = 0;  // without a build id
    std::uint64_t inode = 0;
    std::string path{};  // empty: whatever it is

    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.scope, key.build_id, key.device_major, key.device_minor,
                        key.inode, key.path);
    }
  };

  // A key may be one of many for the same file: every container has its own libc.
  struct Known {
    FileId id = FileId::none;
    bool was_used = true;
  };

  struct Opening {
    FileId id = FileId::none;
    Key key{};  // with a path
    FileProvider::Open open;
    bool is_first = false;
    bool was_waited_for = false;
    std::atomic<bool> is_begun{false};
    CodeFile file{};  // a thread's until it is done
    std::atomic<bool> is_done{false};

    void run();
  };
  using Openings = std::vector<std::shared_ptr<Opening>>;

  static bool are_done(const Openings& openings);
  [[nodiscard]] Openings openings_of(const AddressSpace& space) const;
  static Key key_of(const FileIdentity& identity, Scope scope);
  // What files are one with this one, which was asked for by a key with a path.
  static Key content_key(const CodeFile& file, const Key& asked);
  FileId find(const Key& key);
  static void open(const FileProvider::Open& open_file, CodeFile& file);
  FileId add(CodeFile file);
  FileId add_opened(CodeFile file, Key key);
  FileId post(CodeFile file, Key key, FileProvider::Open open, std::optional<std::uint32_t> user);
  void take(Opening& opened);
  void forget(FileId id);
  void forget_keys();

  FileProvider& provider_;
  FileThreads* threads_;
  CodeFiles files_;
  Openings opening_;
  absl::flat_hash_map<FileId, FileId>
      open_as_;  // what files that are mapped were called before they were open
  std::uint32_t last_id_ = 0;
  absl::flat_hash_map<FileId, std::uint32_t> unused_for_;  // periods; mapped files are not in it
  absl::flat_hash_map<Key, Known> known_;
  absl::flat_hash_map<std::int32_t, FileId> jit_by_pid_;
  FileId vdso_ = FileId::none;
  absl::flat_hash_map<Scope, FileId> vdso_32_;  // by user
};

}  // namespace ddprof
