#include "base/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <tuple>

namespace ddprof {

namespace {

bool is_own(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == ::geteuid();
}

bool has_own_file(const OutputFolder& folder, const char* name, struct stat& status) {
  return folder.has(name, status) && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

// `visit` returns false to look no further.
void visit_names(const OutputFolder& folder, const std::function<bool(const char* name)>& visit) {
  UniqueFd copy(::openat(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(copy.is_open() ? ::fdopendir(copy.get()) : nullptr, ::closedir);
  if (!stream) return;
  std::ignore = copy.release();  // the stream's
  while (const dirent* entry = ::readdir(stream.get())) {
    if (!visit(entry->d_name)) return;
  }
}

std::vector<PrivateFile> files_of(const OutputFolder& folder) {
  std::vector<PrivateFile> files;
  visit_names(folder, [&](const char* name) {
    struct stat status {};
    if (has_own_file(folder, name, status))
      files.push_back({name, static_cast<std::uint64_t>(status.st_size),
                       std::chrono::seconds(status.st_mtim.tv_sec) + Nanoseconds(status.st_mtim.tv_nsec)});
    return true;
  });
  return files;
}

UniqueFd lock_in(const OutputFolder& folder, const std::string& name, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPause = std::chrono::milliseconds(2);
  const bool is_folder = name == ".";
  const int how = is_folder ? O_DIRECTORY : O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(::openat(folder.fd(), name.c_str(), O_RDONLY | O_CLOEXEC | how, 0600));
  if (!fd.is_open() || !is_own(fd.get(), is_folder ? S_IFDIR : S_IFREG)) return {};
  for (const auto end = Clock::now() + patience; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK || Clock::now() >= end) return {};
    std::this_thread::sleep_for(kPause);
  }
  return fd;
}

void trim_folder(const OutputFolder& folder, std::uint64_t max_bytes) {
  std::vector<PrivateFile> all = files_of(folder);
  std::sort(all.begin(), all.end(), [](const PrivateFile& left, const PrivateFile& right) {
    return std::tie(left.written, left.name) > std::tie(right.written, right.name);
  });
  std::uint64_t bytes = 0;
  for (const PrivateFile& file : all) {
    bytes += file.bytes;
    if (bytes > max_bytes) std::ignore = folder.remove(file.name);
  }
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open_own(Result<OutputFolder> folder, const std::string& path) {
  if (!folder) return std::move(folder).error();
  if (!is_own(folder->fd(), S_IFDIR))
    return make_error(ErrorCode::permission_denied, "open folder {}: it is another user's", path);
  constexpr mode_t kOthers = 077;
  struct stat status {};
  if (::fstat(folder->fd(), &status) == 0 && (status.st_mode & kOthers) != 0) ::fchmod(folder->fd(), 0700);
  return PrivateFolder(std::move(folder).value());
}

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  auto opened = call_within(kOpenPatience, [path] {
    return open_own(OutputFolder::open(path, MissingFolders::make_if_safe), path);
  });
  return opened ? std::move(*opened) : does_not_answer("open folder " + path);
}

template <typename Work, typename Answer>
Answer PrivateFolder::ask(Work work, Answer otherwise) const {
  auto answer = calls_.call([folder = folder_, work = std::move(work)] { return work(*folder); });
  return answer ? std::move(*answer) : std::move(otherwise);
}

Result<PrivateFolder> PrivateFolder::folder(const std::string& name) const {
  const std::string path = folder_->path_of(name);
  return ask(
      [path](const OutputFolder&) {
        return open_own(OutputFolder::open(path, MissingFolders::make_if_safe), path);
      },
      Result<PrivateFolder>(does_not_answer("open folder " + path)));
}

Result<MappedRegion> PrivateFolder::read(const std::string& name) const {
  const auto fd = ask([name](const OutputFolder& folder) { return folder.open_own(name); },
                      Result<UniqueFd>(does_not_answer("open " + name)));
  if (!fd) return fd.error();
  return MappedRegion::map_file(fd->get());
}

Result<std::string> PrivateFolder::read_copy(const std::string& name, std::uint64_t max_bytes) const {
  return ask([=](const OutputFolder& folder) { return folder.read_own(name, max_bytes); },
             Result<std::string>(does_not_answer("read " + name)));
}

Result<void> PrivateFolder::write(const std::string& name, std::span<const std::byte> content,
                                  Durability durability) const {
  std::string copy(reinterpret_cast<const char*>(content.data()), content.size());
  return ask([name, durability, copy = std::move(copy)](
                 const OutputFolder& folder) { return folder.replace(name, copy, durability); },
             Result<void>(does_not_answer("write " + name)));
}

Result<void> PrivateFolder::write(const std::string& name, std::span<const std::byte> content) const {
  return write(name, content, Durability::none);
}

Result<void> PrivateFolder::write_durably(const std::string& name, std::span<const std::byte> content) const {
  return write(name, content, Durability::disk);
}

Result<UniqueFd> PrivateFolder::unnamed_file() const {
  return ask([](const OutputFolder& folder) { return folder.unnamed_file(); },
             Result<UniqueFd>(does_not_answer("write a file without a name")));
}

bool PrivateFolder::remove(const std::string& name) const {
  return ask([name](const OutputFolder& folder) { return folder.remove(name); }, false);
}

bool PrivateFolder::is_writable() const {
  return ask(
      [](const OutputFolder& folder) { return ::faccessat(folder.fd(), ".", W_OK | X_OK, AT_EACCESS) == 0; },
      false);
}

bool PrivateFolder::is_linked() const {
  return ask(
      [](const OutputFolder& folder) {
        struct stat status {};
        return ::fstat(folder.fd(), &status) == 0 && status.st_nlink > 0;
      },
      true);
}

std::vector<PrivateFile> PrivateFolder::files() const { return ask(files_of, std::vector<PrivateFile>()); }

bool PrivateFolder::has_file(std::string_view suffix) const {
  return ask(
      [suffix = std::string(suffix)](const OutputFolder& folder) {
        bool is_found = false;
        visit_names(folder, [&](const char* name) {
          struct stat status {};
          is_found = std::string_view(name).ends_with(suffix) && has_own_file(folder, name, status);
          return !is_found;
        });
        return is_found;
      },
      false);
}

UniqueFd PrivateFolder::lock(const std::string& name, std::chrono::milliseconds patience) const {
  return ask([=](const OutputFolder& folder) { return lock_in(folder, name, patience); }, UniqueFd());
}

void PrivateFolder::trim(std::uint64_t max_bytes) const {
  std::ignore =
      ask([max_bytes](const OutputFolder& folder) { return trim_folder(folder, max_bytes), true; }, false);
}

}  // namespace ddprof
