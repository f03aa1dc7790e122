#include "process/file_provider.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/mounts.hpp"
#include "base/read_file.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

namespace {

FileRequest request_of(const MappedFile& file) {
  const FileIdentity& identity = file.identity;
  FileRequest request{.path = identity.path};
  request.inode = identity.inode;
  request.device = ::makedev(identity.device_major, identity.device_minor);
  return request;
}

bool has_build_id(const MappedRegion& region, const BuildId& build_id) {
  if (build_id.empty()) return true;
  const auto elf = ElfFile::parse(region.bytes());
  return elf && elf->build_id() == build_id;
}

// /proc/PID/maps has paths as we see them, records have them as the process does: below its root.
std::string path_below_root(const std::string& process, const std::string& path) {
  std::error_code ignored;
  const std::string root = std::filesystem::read_symlink(process + "/root", ignored);
  return root.size() > 1 && path.starts_with(root + "/") ? path.substr(root.size()) : path;
}

// Whether a path is where a user's program answers for the files.
bool is_served_by_user(const std::string& path) {
  const auto mounts = read_file("/proc/self/mountinfo");
  const auto mount = mounts ? find_mount(path, *mounts) : std::nullopt;
  return mount && mount->server.value_or(0) != 0;
}

}  // namespace

std::size_t ProcFileProvider::copyable_bytes(std::uint32_t user) const {
  std::size_t all = 0;
  for (const auto& [id, bytes] : copied_bytes_) all += bytes;
  const auto known = copied_bytes_.find(user);
  const std::size_t own = known != copied_bytes_.end() ? known->second : 0;
  return std::min(kMaxCopiedBytesOfUser - std::min(own, kMaxCopiedBytesOfUser),
                  kMaxCopiedBytes - std::min(all, kMaxCopiedBytes));
}

Result<CodeImage> ProcFileProvider::try_open(const FileRequest& request, const MappedFile& file) {
  auto opened = opener_.open(request);
  if (!opened && opened.error().code == ErrorCode::exhausted)
    copied_bytes_[request.user] += request.max_copied_bytes;  // the thread that hangs may hold them
  if (!opened) return std::move(opened).error();
  if (opened->copy) copied_bytes_[request.user] += opened->copy->size();
  MappedRegion region = TRY(map_foreign_file(*opened));
  if (!has_build_id(region, file.identity.build_id))
    return make_error(ErrorCode::not_found, "open {}: of another build", request.path);
  return CodeImage{.path = file.identity.path, .region = std::move(region), .owner = opened->owner};
}

Result<CodeImage> ProcFileProvider::open_of_process(const MappedFile& file, const UserRights& user,
                                                    std::shared_ptr<const TargetRoot> root) {
  const std::string process = fmt::format("/proc/{}", to_int(file.pid));
  FileRequest request = request_of(file);
  request.user = user.user;
  request.mounts = process + "/mountinfo";
  request.max_copied_bytes = copyable_bytes(user.user);
  FileRequest mapped = request;
  mapped.links = FileRequest::Links::of_kernel;
  mapped.path = fmt::format("{}/map_files/{:x}-{:x}", process, file.start.value, file.end.value);
  // As the record has it, without links: a link there was put there since.
  request.links = FileRequest::Links::refused;
  if (root) {
    request.root = root->path();
    request.path = path_below_root(process, request.path);
  }
  if (user.user != ::geteuid()) request.rights = user;

  auto image = try_open(request, file);
  const bool is_refused = !image && image.error().code == ErrorCode::permission_denied;
  if (!image && image.error().code != ErrorCode::exhausted) image = try_open(mapped, file);
  if (!image && is_refused && request.rights) {  // a user whom we may not become
    request.rights.reset();
    image = try_open(request, file);
  }
  if (!image) return image;
  image->path = request.path;
  image->root = std::move(root);
  image->rights = rights_of_writer(image->owner, user);
  return image;
}

Result<CodeImage> ProcFileProvider::open_of_unknown(const MappedFile& file) {
  if (is_served_by_user(file.identity.path))
    return make_error(ErrorCode::unsupported, "open {}: its file system is a user's", file.identity.path);
  FileRequest request = request_of(file);
  request.links = FileRequest::Links::refused;
  request.user = kNoGroup;
  CodeImage image = TRY(try_open(request, file));
  image.rights = rights_of_writer(image.owner, std::nullopt);
  return image;
}

Result<CodeImage> ProcFileProvider::open(const MappedFile& file) {
  const auto user = read_process_user(file.pid);
  auto root = roots_.find_or_open(file.pid);
  auto image = user && root ? open_of_process(file, user->rights, std::move(*root)) : open_of_unknown(file);
  if (image || image.error().code == ErrorCode::exhausted) return image;
  return make_error(ErrorCode::not_found, "open {}: gone or replaced since it was mapped",
                    file.identity.path);
}

}  // namespace ddprof
