#include "symbol/kernel_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/read_file.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kFileName = "kernel-symbols";

// Addresses are the same until the machine is started anew, and only until then.
std::string kernel_key() {
  auto boot = read_file("/proc/sys/kernel/random/boot_id");
  return boot ? boot->substr(0, boot->find('\n')) : "";
}

bool is_ours(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == ::geteuid();
}

// Not open if somebody else could put things into it.
UniqueFd open_own_folder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.is_open() && !is_ours(folder.get(), S_IFDIR)) folder.reset();
  return folder;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The folder, and the one that it is in, are made if need be, but nothing is put into somebody else's: under
// sudo the home directory may be another user's.
UniqueFd open_folder(const std::string& path) {
  const std::string parent = parent_of(path);
  if (open_own_folder(parent_of(parent)).is_open()) ::mkdir(parent.c_str(), 0700);
  if (open_own_folder(parent).is_open()) ::mkdir(path.c_str(), 0700);
  return open_own_folder(path);
}

Result<KernelSymbols> load_image(int folder, std::string_view key) {
  UniqueFd fd(::openat(folder, kFileName.data(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open() || !is_ours(fd.get(), S_IFREG))
    return make_error(ErrorCode::not_found, "no kernel symbols kept");
  return KernelSymbols::from_image(TRY(MappedRegion::map_file(fd.get())), key);
}

// Who looks meanwhile finds the old file or the new one; whoever has the old one mapped keeps it.
void save_image(int folder, const std::vector<std::byte>& image) {
  const std::string temporary = fmt::format("{}.{}", kFileName, ::getpid());
  UniqueFd fd(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open()) return;
  const bool is_written = ::write(fd.get(), image.data(), image.size()) == static_cast<ssize_t>(image.size());
  if (!is_written || ::renameat(folder, temporary.c_str(), folder, kFileName.data()) != 0)
    ::unlinkat(folder, temporary.c_str(), 0);
}

}  // namespace

void KernelNames::read_kernel() {
  source_ = Source::kernel;
  if (auto read = KernelSymbols::read(kallsyms_)) symbols_ = *std::move(read);
}

void KernelNames::load() {
  const std::string key = cache_folder_.empty() ? "" : kernel_key();
  const UniqueFd folder = key.empty() ? UniqueFd() : open_folder(cache_folder_);
  if (!folder.is_open()) return read_kernel();
  if (auto kept = load_image(folder.get(), key)) {
    source_ = Source::cache;
    symbols_ = *std::move(kept);
    return;
  }
  read_kernel();
  if (!symbols_.empty()) save_image(folder.get(), symbols_.image(key));
}

std::optional<KernelSymbol> KernelNames::find(std::uint64_t address) {
  if (source_ == Source::none) load();
  auto symbol = symbols_.find(address);
  if (!symbol && source_ == Source::cache) {
    read_kernel();
    symbol = symbols_.find(address);
  }
  return symbol;
}

}  // namespace ddprof
