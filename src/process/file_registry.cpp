#include "process/file_registry.hpp"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
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

std::optional<std::uint64_t> CodeFile::elf_address(std::uint64_t file_offset) const {
  if (!elf) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const auto& segment : elf->segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const std::uint64_t first = segment.offset & ~(page - 1);  // mmap works in whole pages
    if (file_offset < first || file_offset >= segment.offset + segment.filesz) continue;
    return segment.vaddr - segment.offset + file_offset;
  }
  return std::nullopt;
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

void FileRegistry::open(const FileProvider::Open& open_file, CodeFile& file) {
  file.kind = CodeFile::Kind::unopened;
  auto image = open_file();
  if (!image) {
    file.problem = image.error().message;
  } else if (image->dump) {
    file.kind = CodeFile::Kind::jit_dump;
    file.dump = std::move(image->dump);
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
}

FileId FileRegistry::find_or_open(Pid pid, Address mapping_start, Address mapping_end,
                                  const FileIdentity& identity, std::optional<std::uint32_t>& user) {
  take_opened();
  if (const FileId known = find(key_of(identity, kAllUsers)); known != FileId::none) return known;
  if (const auto now = find_user_of(pid)) user = now;
  Key key = key_of(identity, user ? Scope{*user} : kUnknownUser);
  if (const FileId known = find(key); known != FileId::none) return known;
  key.path = identity.path;
  if (const FileId known = find(key); known != FileId::none) return known;

  auto open_file = provider_.prepare({pid, mapping_start, mapping_end, identity});
  CodeFile file{.path = identity.path, .build_id = identity.build_id, .pid = pid};
  if (threads_ != nullptr) return post(std::move(file), std::move(key), std::move(open_file), user);
  open(open_file, file);
  return add_opened(std::move(file), std::move(key));
}

void FileRegistry::Opening::run() {
  if (is_begun.exchange(true)) return;  // it was posted again
  FileRegistry::open(open, file);
  is_done.store(true, std::memory_order_release);
}

FileId FileRegistry::post(CodeFile file, Key key, FileProvider::Open open_file,
                          std::optional<std::uint32_t> user) {
  CodeFile known{
      .kind = CodeFile::Kind::opening, .path = file.path, .build_id = file.build_id, .pid = file.pid};
  auto opening = std::make_shared<Opening>();
  opening->open = std::move(open_file);
  opening->file = std::move(file);
  opening->key = key;
  if (threads_->post(
          user, [opening] { opening->run(); }, FileThreads::Urgency::later)) {
    opening_.push_back(opening);
  } else {
    known.kind = CodeFile::Kind::unopened;
    known.problem = fmt::format("open {}: too many files of its user hang", known.path);
  }
  opening->id = add(std::move(known));
  known_[std::move(key)].id = opening->id;
  return opening->id;
}

FileId FileRegistry::add_opened(CodeFile file, Key key) {
  // The same file may be known by its build id from a record, and by its inode from /proc/PID/maps.
  const bool has_content = file.kind == CodeFile::Kind::elf && !file.build_id.empty();
  const Key content = has_content ? content_key(file, key) : key;
  if (file.is_for_all()) key.scope = kAllUsers;
  FileId id = find(content);
  if (id == FileId::none) {
    id = add(std::move(file));
    known_[content].id = id;
  }
  if (key.build_id.empty()) known_[std::move(key)].id = id;
  return id;
}

void FileRegistry::take(Opening& opened) {
  if (!files_.contains(opened.id)) return;  // forgotten meanwhile
  if (!opened.file.elf) return files_.add(opened.id, std::move(opened.file));
  known_.erase(opened.key);
  open_as_[opened.id] = add_opened(std::move(opened.file), std::move(opened.key));
  forget(opened.id);
}

bool FileRegistry::are_done(const Openings& openings) {
  return std::all_of(openings.begin(), openings.end(),
                     [](const auto& opening) { return opening->is_done.load(std::memory_order_acquire); });
}

void FileRegistry::take_opened(Nanoseconds most_waiting) {
  if (most_waiting > Nanoseconds(0) && !opening_.empty())
    threads_->wait_for(most_waiting, [this] { return are_done(opening_); });
  std::erase_if(opening_, [this](const std::shared_ptr<Opening>& opening) {
    const bool is_done = opening->is_done.load(std::memory_order_acquire);
    if (is_done) take(*opening);
    return is_done;
  });
}

FileRegistry::Openings FileRegistry::openings_of(const AddressSpace& space) const {
  Openings mapped;
  for (const auto& opening : opening_) {
    const auto& mappings = space.mappings();
    if (std::any_of(mappings.begin(), mappings.end(),
                    [&](const CodeMapping& mapping) { return mapping.file == opening->id; }))
      mapped.push_back(opening);
  }
  return mapped;
}

bool FileRegistry::open_first(const AddressSpace& space, std::optional<std::uint32_t> user) {
  take_opened();
  const Openings mapped = openings_of(space);
  for (const auto& opening : mapped) {
    if (!std::exchange(opening->is_first, true) && !opening->is_begun)
      std::ignore = threads_->post(user, [opening] { opening->run(); });
  }
  return mapped.empty();
}

void FileRegistry::wait_until_open(const AddressSpace& space, std::optional<std::uint32_t> user) {
  if (open_first(space, user)) return;
  Openings mapped = openings_of(space);
  std::erase_if(mapped, [](const auto& opening) { return std::exchange(opening->was_waited_for, true); });
  if (mapped.empty()) return;
  threads_->wait(user, false, [&] { return are_done(mapped); });
  take_opened();
}

FileId FileRegistry::resolved(FileId id) const {
  const auto known = open_as_.find(id);
  return known != open_as_.end() ? known->second : id;
}

CodeMapping FileRegistry::resolved(CodeMapping mapping) const {
  mapping.file = resolved(mapping.file);
  const auto& file = files_[mapping.file];
  if (file == nullptr || file->kind == CodeFile::Kind::jit) return mapping;
  // The best guess for a file that we cannot read is that it is mapped as it is.
  const auto address = file->kind == CodeFile::Kind::vdso
                           ? 0
                           : file->elf_address(mapping.file_offset).value_or(mapping.file_offset);
  mapping.bias = mapping.start.value - address;
  return mapping;
}

Frame FileRegistry::resolved(Frame frame) const {
  const FileId id = resolved(frame.file);
  if (id == frame.file) return frame;
  frame.file = id;
  if (frame.kind == FrameKind::user)
    frame.address = files_[id]->elf_address(frame.address).value_or(frame.address);
  return frame;
}

FileId FileRegistry::find_or_add_jit(Pid pid) {
  auto [entry, is_new] = jit_by_pid_.try_emplace(to_int(pid), FileId::none);
  if (is_new) {
    CodeFile file;
    file.kind = CodeFile::Kind::jit;
    file.path = kGeneratedCodePath;
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

FileId FileRegistry::vdso_32(std::optional<std::uint32_t> user,
                             const std::function<std::vector<std::byte>()>& read) {
  FileId& known = vdso_32_[user ? Scope{*user} : kUnknownUser];
  const auto& before = files_[known];
  if (before != nullptr && before->kind == CodeFile::Kind::vdso) return known;
  CodeFile file;
  file.path = "[vdso]";
  file.problem = "the memory of a 32-bit process could not be read";
  const std::vector<std::byte> bytes = read();
  auto region =
      bytes.empty() ? MappedRegion() : MappedRegion::map_anonymous_shared(bytes.size()).value_or({});
  if (region.size() == bytes.size() && !bytes.empty()) {
    std::memcpy(region.data(), bytes.data(), bytes.size());
    auto elf = ElfFile::parse(region.bytes());
    if (elf && elf->is_32_bit()) {
      file.kind = CodeFile::Kind::vdso;
      file.problem.clear();
      file.build_id = elf->build_id();
      file.elf = std::move(elf).value();
      file.image = std::move(region);
    }
  }
  if (before != nullptr && file.kind == CodeFile::Kind::unopened) return known;
  return known = add(std::move(file));
}

void FileRegistry::forget(FileId id) {
  files_.erase(id);
  unused_for_.erase(id);
}

// Of files that are gone, and those that can be found again.
void FileRegistry::forget_keys() {
  absl::erase_if(jit_by_pid_, [this](const auto& entry) { return !files_.contains(entry.second); });
  absl::erase_if(vdso_32_, [this](const auto& entry) { return !files_.contains(entry.second); });
  absl::erase_if(known_, [this](auto& entry) {
    const auto& file = files_[entry.second.id];
    const bool was_used = std::exchange(entry.second.was_used, false);
    if (file != nullptr && file->kind == CodeFile::Kind::opening) return false;
    return file == nullptr || (!was_used && !entry.first.path.empty() && !file->build_id.empty());
  });
}

void FileRegistry::forget_unused(const absl::flat_hash_set<FileId>& mapped) {
  absl::erase_if(open_as_, [&](const auto& entry) { return !mapped.contains(entry.first); });
  absl::flat_hash_set<FileId> used;
  for (const FileId id : mapped) used.insert(resolved(id));
  std::vector<std::pair<std::uint32_t, FileId>> unused;  // how long, and which
  std::vector<FileId> forgotten;
  files_.for_each([&](FileId id, const std::shared_ptr<const CodeFile>& file) {
    if (id == vdso_) return;
    if (used.contains(id)) {
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
  std::sort(unused.begin(), unused.end());
  for (std::size_t at = kMaxUnused; at < unused.size(); ++at) forget(unused[at].second);
  forget_keys();
}

}  // namespace ddprof
