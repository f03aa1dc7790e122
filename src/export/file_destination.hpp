#pragma once

#include <cstddef>
#include <string>

#include "encode/output_format.hpp"
#include "export/destination.hpp"

namespace ddprof {

// Writes each profile so that a reader never sees half of one: a temporary file beside it, then rename.
Result<void> write_file_atomically(const std::string& path, const std::string& content);

// One file for the whole run; the format follows from its extension. When the run comes in parts, because its
// worker was replaced, each part is added to what the file holds.
class FileDestination final : public Destination {
 public:
  // Fails at once when the file could not be written later: nobody should learn that after an hour.
  static Result<FileDestination> create(std::string path);

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return path_; }

 private:
  [[nodiscard]] Result<std::string> added_to_file(const Profile& profile) const;

  FileDestination(std::string path, OutputFormat format) : path_(std::move(path)), format_(format) {}

  std::string path_;
  OutputFormat format_;
};

// One file per period, PREFIX-000000.pb.gz and so on; keeps the newest `max_files` that this run has written.
class PeriodicFileDestination final : public Destination {
 public:
  static constexpr std::size_t kMaxFiles = 100;

  static Result<PeriodicFileDestination> create(std::string prefix, std::size_t max_files = kMaxFiles);

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override { return prefix_ + "-*.pb.gz"; }

 private:
  PeriodicFileDestination(std::string prefix, std::size_t max_files)
      : prefix_(std::move(prefix)), max_files_(max_files) {}

  [[nodiscard]] std::string path_of(std::uint64_t sequence) const;

  std::string prefix_;
  std::size_t max_files_;
};

}  // namespace ddprof
