#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "encode/output_format.hpp"
#include "export/destination.hpp"

namespace ddprof {

// Writes each profile so that a reader never sees half of one: a temporary file beside it, then rename.
Result<void> write_file_atomically(const std::string& path, const std::string& content);

// The same, and whatever has that name is replaced, a link or a device too.
Result<void> replace_file(const std::string& path, const std::string& content);
// The same for a name that is not taken yet. False: it is, and what has it stays as it is.
Result<bool> write_new_file(const std::string& path, const std::string& content);

// Whether `path` could be written when the time comes: nobody should learn that after an hour.
Result<void> check_writable(const std::string& path);

// One file for the whole run; the format follows from its extension. When the run comes in parts, because its
// worker was replaced, each part is added to what the file holds. A picture cannot be added to: until the
// last part, the profile that it shows is in FILE.parts.pb.gz.
class FileDestination final : public Destination {
 public:
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
};

}  // namespace ddprof
