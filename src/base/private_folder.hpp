#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

struct PrivateFile {
  std::string name;
  std::uint64_t bytes = 0;
  Nanoseconds written{};  // Unix time
};

// A folder of files that only this user may read and write: caches, a spool. Somebody else's folder, or
// somebody else's file in it, is not used. Several processes may use one at the same time: a reader finds the
// old file or the new one, and who has the old one mapped keeps it.
class PrivateFolder {
 public:
  PrivateFolder() = default;

  // Makes the folder, and the one that it is in, but puts nothing into somebody else's: under sudo the home
  // directory may be another user's.
  static Result<PrivateFolder> open(const std::string& path);

  // One inside of this one, made if need be.
  [[nodiscard]] Result<PrivateFolder> folder(const std::string& name) const;

  [[nodiscard]] bool is_open() const { return fd_.is_open(); }
  [[nodiscard]] Result<MappedRegion> read(const std::string& name) const;
  Result<void> write(const std::string& name, std::span<const std::byte> content) const;
  // As write(), and what was written survives a crash of the machine.
  Result<void> write_durably(const std::string& name, std::span<const std::byte> content) const;
  // False when somebody else has removed it.
  [[nodiscard]] bool remove(const std::string& name) const;
  // In no order. Those whose names begin with a dot are being written, or were when somebody crashed.
  [[nodiscard]] std::vector<PrivateFile> files() const;
  // Held until it is closed; not open while another process holds it.
  [[nodiscard]] UniqueFd try_lock(const std::string& name) const;
  // Removes the files that were written longest ago until those left have at most this many bytes.
  void trim(std::uint64_t max_bytes) const;

 private:
  enum class Durability : std::uint8_t { none, disk };
  Result<void> write(const std::string& name, std::span<const std::byte> content,
                     Durability durability) const;

  explicit PrivateFolder(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace ddprof
