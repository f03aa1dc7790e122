#include "process/file_registry.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace ddprof {

namespace {

// The vdso has no file. Its size is not published; two pages hold it on x86-64 since 3.15, four are mapped on
// newer kernels. Section headers, which end the image, tell the real extent.
std::span<const std::byte> own_vdso() {
  auto address = ::getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return {};
  const auto* start = reinterpret_cast<const std::byte*>(address);
  std::uint64_t section_offset = 0;
  std::uint16_t section_size = 0;
  std::uint16_t section_count = 0;
  std::memcpy(&section_offset, start + 40, sizeof section_offset);  // e_shoff
  std::memcpy(&section_size, start + 58, sizeof section_size);      // e_shentsize
  std::memcpy(&section_count, start + 60, sizeof section_count);    // e_shnum
  return {start, section_offset + std::uint64_t{section_size} * section_count};
}

}  // namespace

std::string CodeFile::base_name() const {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool CodeFile::is_as_opened() const {
  if (kind != Kind::elf || build_id.empty()) return true;
  auto now = ElfFile::parse(image.bytes());
  return now.ok() && now->build_id() == build_id;
}

std::string CodeFile::cache_key() const {
  if (build_id.empty() || !owner) return {};
  return is_for_all() ? build_id.hex() : fmt::format("{}-{}", build_id.hex(), *owner);
}

const std::shared_ptr<const CodeFile>& CodeFiles::operator[](FileId id) const {
  static const std::shared_ptr<const CodeFile> kNone;
  const auto known = files_.find(to_int(id));
  return known != files_.end() ? known->second : kNone;
}

void CodeFiles::add(FileId id, CodeFile file) {
  files_[to_int(id)] = std::make_shared<const CodeFile>(std::move(file));
}

FileId FileRegistry::add(CodeFile file) {
  const auto id = static_cast<FileId>(++last_id_);
  files_.add(id, std::move(file));
  return id;
}

FileRegistry::Key FileRegistry::key_of(const FileIdentity& identity, Scope scope) {
  if (!identity.build_id.empty()) return {.scope = scope, .build_id = identity.build_id};
  return {.scope = scope,
          .device_major = identity.device_major,
          .device_minor = identity.device_minor,
          .inode = identity.inode,
          .path = identity.path};
}

FileRegistry::Key FileRegistry::content_key(const CodeFile& file, const Key& asked) {
  Key key{.scope = file.is_for_all() ? kAllUsers : asked.scope, .build_id = file.build_id};
  const bool is_trusted = file.owner == 0U || (file.owner && *file.owner == asked.scope);
  if (key.scope != kAllUsers && (!is_trusted || asked.scope == kUnknownUser)) key.path = asked.path;
  return key;
}

FileId FileRegistry::find(const Key& key) {
  const auto known = known_.find(key);
  if (known == known_.end()) return FileId::none;
  known->second.was_used = true;
  return known->second.id;
}

CodeFile FileRegistry::open(const MappedFile& mapped) {
  CodeFile file;
  file.path = mapped.identity.path;
  file.build_id = mapped.identity.build_id;
  file.pid = mapped.pid;
  if (is_jit_dump_path(file.path)) {
    auto dump = provider_.open_jit_dump(mapped);
    if (dump) {
      file.kind = CodeFile::Kind::jit_dump;
      file.dump = std::move(dump).value();
    } else {
      file.problem = dump.error().message;
    }
    return file;
  }
  auto image = provider_.open(mapped);
  if (!image) {
    file.problem = image.error().message;
  } else if (auto elf = ElfFile::parse(image->region.bytes()); !elf) {
    file.problem = elf.error().message;
  } else {
    file.kind = CodeFile::Kind::elf;
    file.build_id = elf->build_id();
    file.elf = std::move(elf).value();
    file.image = std::move(image->region);
    file.path = std::move(image->path);
    file.root = std::move(image->root);
    file.owner = image->owner;
    file.rights = std::move(image->rights);
  }
  return file;
}

FileId FileRegistry::find_or_open(Pid pid, Address mapping_start, Address mapping_end,
                                  const FileIdentity& identity, std::optional<std::uint32_t>& user) {
  if (const FileId known = find(key_of(identity, kAllUsers)); known != FileId::none) return known;
  if (const auto now = find_user_of(pid)) user = now;
  Key key = key_of(identity, user ? Scope{*user} : kUnknownUser);
  if (const FileId known = find(key); known != FileId::none) return known;
  key.path = identity.path;
  if (const FileId known = find(key); known != FileId::none) return known;

  CodeFile file = open({pid, mapping_start, mapping_end, identity});
  // The same file may be known by its build id from a record, and by its inode from /proc/PID/maps.
  const bool has_content = file.kind == CodeFile::Kind::elf && !file.build_id.empty();
  const Key content = has_content ? content_key(file, key) : key;
  if (file.is_for_all()) key.scope = kAllUsers;
  FileId id = find(content);
  if (id == FileId::none) {
    id = add(std::move(file));
    known_[content].id = id;
  }
  if (identity.build_id.empty()) known_[std::move(key)].id = id;
  return id;
}

FileId FileRegistry::find_or_add_jit(Pid pid) {
  auto [entry, is_new] = jit_by_pid_.try_emplace(to_int(pid), FileId::none);
  if (is_new) {
    CodeFile file;
    file.kind = CodeFile::Kind::jit;
    file.path = "[anonymous code]";
    file.pid = pid;
    entry->second = add(std::move(file));
  }
  return entry->second;
}

FileId FileRegistry::vdso() {
  if (vdso_ != FileId::none) return vdso_;
  CodeFile file;
  file.path = "[vdso]";
  if (auto elf = ElfFile::parse(own_vdso())) {
    file.kind = CodeFile::Kind::vdso;
    file.build_id = elf->build_id();
    file.elf = std::move(elf).value();
  } else {
    file.problem = elf.error().message;
  }
  vdso_ = add(std::move(file));
  return vdso_;
}

void FileRegistry::forget(FileId id) {
  files_.erase(id);
  unused_for_.erase(id);
}

// Of files that are gone, and those that can be found again.
void FileRegistry::forget_keys() {
  absl::erase_if(jit_by_pid_, [this](const auto& entry) { return !files_.contains(entry.second); });
  absl::erase_if(known_, [this](auto& entry) {
    const auto& file = files_[entry.second.id];
    const bool was_used = std::exchange(entry.second.was_used, false);
    return file == nullptr || (!was_used && !entry.first.path.empty() && !file->build_id.empty());
  });
}

void FileRegistry::forget_unused(const absl::flat_hash_set<FileId>& mapped) {
  std::vector<std::pair<std::uint32_t, FileId>> unused;  // how long, and which
  std::vector<FileId> forgotten;
  files_.for_each([&](FileId id, const std::shared_ptr<const CodeFile>& file) {
    if (id == vdso_) return;
    if (mapped.contains(id)) {
      unused_for_.erase(id);
      return;
    }
    const std::uint32_t periods = ++unused_for_[id];
    const bool is_of_one_process =
        file->kind == CodeFile::Kind::jit || file->kind == CodeFile::Kind::jit_dump;
    if (is_of_one_process || periods > kKeptPeriods) {
      forgotten.push_back(id);
    } else {
      unused.emplace_back(periods, id);
    }
  });
  for (const FileId id : forgotten) forget(id);
  if (unused.size() > kMaxUnused) {
    std::sort(unused.begin(), unused.end());
    for (std::size_t at = kMaxUnused; at < unused.size(); ++at) forget(unused[at].second);
  }
  forget_keys();
}

}  // namespace ddprof
