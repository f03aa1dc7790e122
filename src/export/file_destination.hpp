#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/call_within.hpp"
#include "encode/output_format.hpp"
#include "export/destination.hpp"

namespace ddprof {

// One file for the whole run; the format follows from its extension. When the run comes in parts, because its
// worker was replaced, each part is added to what the file holds. Of other formats than pprof, the profile
// that they show is in FILE.parts.pb.gz until the last part. A file system that hangs is an error.
class FileDestination final : public Destination {
 public:
  // For one write: a slow disk may take seconds.
  static constexpr std::chrono::milliseconds kPatience{15'000};
  // Is shown the profile that the file holds, whole, each time it has been written.
  using OnWritten = std::function<void(const Profile&)>;

  // Fails at once when the file could not be written later.
  static Result<FileDestination> create(std::string path, OnWritten on_written = {});
  // Under a name that no file has: STEM.pb.gz, else STEM-2.pb.gz and so on.
  static Result<FileDestination> create_new(const std::string& stem, OnWritten on_written = {});

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return path_; }

 private:
  [[nodiscard]] Result<void> send_part(const Batch& batch) const;
  [[nodiscard]] Result<std::string> read_parts(const std::string& path) const;
  [[nodiscard]] Result<void> write(const std::string& path, std::string content) const;

  // A name that is taken from the beginning of a run, by an empty file. If nothing is written into it, the
  // process that took it removes it.
  class Claim {
   public:
    Claim() = default;
    static Result<Claim> first_free(const std::string& stem);
    Claim(Claim&& other) noexcept : path_(std::exchange(other.path_, {})), owner_(other.owner_) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(path_, other.path_);
      std::swap(owner_, other.owner_);
      return *this;
    }
    ~Claim();

    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    std::string path_;
    pid_t owner_ = 0;
  };

  FileDestination(std::string path, OutputFormat format, Claim claim, OnWritten on_written)
      : path_(std::move(path)),
        format_(format),
        claim_(std::move(claim)),
        on_written_(std::move(on_written)) {}

  std::string path_;
  OutputFormat format_;
  Claim claim_;
  OnWritten on_written_;
  PatientCalls calls_{kPatience};
};

}  // namespace ddprof
