#include "export/file_destination.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "base/output_file.hpp"
#include "base/unique_fd.hpp"
#include "encode/pprof.hpp"
#include "profile/merge.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;  // of a file that is added to

}  // namespace

Result<FileDestination> FileDestination::create(std::string path, OnWritten on_written) {
  OutputFormat format = TRY(output_format(path));
  // A recording may add to its file, and has to read it for that.
  if (format == OutputFormat::otlp) {
    return with_hint(make_error(ErrorCode::invalid_argument,
                                "output {}: OTLP is written by ddprof convert, not while recording", path),
                     "record into FILE.pb.gz, then: ddprof convert FILE.pb.gz " + path);
  }
  if (auto writable = check_writable(path); !writable) return std::move(writable).error();
  return FileDestination(std::move(path), format, Claim(), std::move(on_written));
}

Result<FileDestination> FileDestination::create_new(const std::string& stem, OnWritten on_written) {
  Claim claim = TRY(Claim::first_free(stem));
  std::string path = claim.path();
  return FileDestination(std::move(path), OutputFormat::pprof_gzip, std::move(claim), std::move(on_written));
}

Result<FileDestination::Claim> FileDestination::Claim::first_free(const std::string& stem) {
  constexpr unsigned kMostTries = 10'000;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const auto [folder_path, name] = split_path(stem);
  const auto opened = OutputFolder::open(folder_path);
  if (!opened) return std::move(check_writable(stem + ".pb.gz")).error();
  const OutputFolder& folder = *opened;
  Claim claim;
  for (unsigned number = 1; number <= kMostTries; ++number) {
    const std::string taken = number == 1 ? name + ".pb.gz" : fmt::format("{}-{}.pb.gz", name, number);
    claim.path_ = folder.path_of(taken);
    if (UniqueFd(::openat(folder.fd(), taken.c_str(), kFlags, 0600)).is_open()) {
      claim.owner_ = ::getpid();
      return claim;
    }
    if (errno != EEXIST) break;
  }
  return with_hint(errno_error(errno, "write " + claim.path_), "choose another place with --output FILE");
}

FileDestination::Claim::~Claim() {
  if (path_.empty() || owner_ != ::getpid()) return;
  const auto [folder_path, name] = split_path(path_);
  const auto folder = OutputFolder::open(folder_path);
  struct stat status {};
  if (folder && folder->has(name, status) && S_ISREG(status.st_mode) && status.st_size == 0)
    std::ignore = folder->remove(name);
}

Result<std::string> FileDestination::read_parts(const std::string& path) const {
  auto content = calls_.call([path]() -> Result<std::string> {
    const auto [folder, name] = split_path(path);
    return TRY(OutputFolder::open(folder)).read_own(name, kMostBytes);
  });
  return content ? std::move(*content) : does_not_answer("read " + path);
}

Result<void> FileDestination::write(const std::string& path, std::string content) const {
  auto written = calls_.call([path, content = std::move(content)] { return write_output(path, content); });
  return written ? std::move(*written) : does_not_answer("write " + path);
}

Result<void> FileDestination::send_part(const Batch& batch) const {
  const bool is_pprof = format_ == OutputFormat::pprof_gzip || format_ == OutputFormat::pprof;
  const std::string parts = is_pprof ? path_ : path_ + ".parts.pb.gz";
  Profile joined, merged;
  const Profile* whole = &batch.whole(joined);
  if (batch.sequence > 0) {
    const std::string bytes = TRY(read_parts(parts));
    merged = merge(TRY(decode_pprof(std::as_bytes(std::span(bytes)))), *whole);
    whole = &merged;
  }
  std::string content = TRY(encode(*whole, format_));
  TRY(write(path_, std::move(content)));
  if (on_written_) on_written_(*whole);
  if (is_pprof) return {};
  if (!batch.is_last) return write(parts, TRY(encode(*whole, OutputFormat::pprof_gzip)));
  if (batch.sequence == 0) return {};
  std::ignore = calls_.call([parts] {
    const auto [folder_path, name] = split_path(parts);
    const auto folder = OutputFolder::open(folder_path);
    return folder && folder->remove(name);
  });
  return {};
}

Result<Delivery> FileDestination::send(const Batch& batch) {
  TRY(send_part(batch));
  return Delivery::arrived;
}

}  // namespace ddprof
