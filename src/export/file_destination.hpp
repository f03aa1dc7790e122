#pragma once

#include <cstddef>
#include <string>

#include "encode/output_format.hpp"
#include "export/destination.hpp"

namespace ddprof {

// Writes each profile so that a reader never sees half of one: a temporary file beside it, then rename.
Result<void> write_file_atomically(const std::string& path, const std::string& content);

// Whether `path` could be written when the time comes: nobody should learn that after an hour.
Result<void> check_writable(const std::string& path);

// One file for the whole run; the format follows from its extension. When the run comes in parts, because its
// worker was replaced, each part is added to what the file holds.
class FileDestination final : public Destination {
 public:
  // Fails at once when the file could not be written later.
  static Result<FileDestination> create(std::string path);

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return path_; }

 private:
  [[nodiscard]] Result<std::string> added_to_file(const Profile& profile) const;

  FileDestination(std::string path, OutputFormat format) : path_(std::move(path)), format_(format) {}

  std::string path_;
  OutputFormat format_;
};

}  // namespace ddprof
