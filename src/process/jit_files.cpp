#include "process/jit_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "process/process_user.hpp"
#include "process/target_roots.hpp"

namespace ddprof {

namespace {

// As the process sees it. It may be any user's process, so it must be that user's file.
FileRequest request_of(Pid pid, std::uint32_t user, std::string path) {
  FileRequest request{.path = std::move(path)};
  request.links = FileRequest::Links::last_refused;
  request.user = user;
  request.mounts = fmt::format("/proc/{}/mountinfo", to_int(pid));
  if (!sees_our_root(pid)) request.root = fmt::format("/proc/{}/root", to_int(pid));
  return request;
}

FileRequest own_request(std::string path, std::uint32_t user) {
  FileRequest request{.path = std::move(path)};
  request.links = FileRequest::Links::last_refused;
  request.user = user;
  return request;
}

}  // namespace

bool is_jit_dump_path(std::string_view path) {
  constexpr std::string_view kPrefix = "jit-";
  constexpr std::string_view kSuffix = ".dump";
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (!path.starts_with(kPrefix) || !path.ends_with(kSuffix)) return false;
  if (path.size() <= kPrefix.size() + kSuffix.size()) return false;
  const auto digits = path.substr(kPrefix.size(), path.size() - kPrefix.size() - kSuffix.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<JitFile> JitFile::open(PatientOpener& opener, const FileRequest& request) {
  ForeignFile file = TRY(opener.open(request));
  const std::string path = request.root + request.path;
  if (file.user != request.user)
    return make_error(ErrorCode::permission_denied,
                      "open {}: refused, it belongs to user {}, and the process to user {}", path, file.user,
                      request.user);
  return JitFile(std::move(file.fd), path);
}

Result<JitFile> JitFile::open_perf_map(PatientOpener& opener, Pid pid) {
  const auto user = read_process_user(pid);
  const std::string outside = fmt::format("/tmp/perf-{}.map", to_int(pid));
  if (!user) return open(opener, own_request(outside, ::geteuid()));
  const std::uint32_t owner = user->rights.user;
  auto inside = open(opener, request_of(pid, owner, fmt::format("/tmp/perf-{}.map", user->inner_pid)));
  if (inside || inside.error().code != ErrorCode::not_found) return inside;
  return open(opener, own_request(outside, owner));
}

Result<JitFile> JitFile::open_dump(PatientOpener& opener, const MappedFile& file) {
  const auto user = read_process_user(file.pid);
  if (!user) return open(opener, own_request(file.identity.path, ::geteuid()));
  FileRequest request = request_of(file.pid, user->rights.user, file.identity.path);
  auto dump = open(opener, request);
  if (dump || dump.error().code != ErrorCode::not_found) return dump;
  // Deleted: the link is the kernel's own, and must be followed.
  request.root.clear();
  request.links = FileRequest::Links::of_kernel;
  request.path =
      fmt::format("/proc/{}/map_files/{:x}-{:x}", to_int(file.pid), file.start.value, file.end.value);
  auto mapped = open(opener, request);
  return mapped ? std::move(mapped) : std::move(dump);
}

Result<std::uint64_t> JitFile::size() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "stat " + path_);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::size_t> JitFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path_);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<std::string> JitFile::read_all(std::size_t max_bytes) const {
  const std::uint64_t bytes = TRY(size());
  if (bytes > max_bytes)
    return make_error(ErrorCode::exhausted, "read {}: larger than {} bytes", path_, max_bytes);
  std::string text(bytes, '\0');
  text.resize(TRY(read(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

}  // namespace ddprof
