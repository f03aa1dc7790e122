#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "base/build_id.hpp"
#include "base/output_file.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// The folder in which elfutils' client keeps what debuginfod servers sent: BUILDID/debuginfo, which is empty
// when no server had it. Shared with that client and with other profilers: a file appears there whole, or not
// at all.
class DebuginfodCache {
 public:
  enum class Entry { none, present, known_absent };

  explicit DebuginfodCache(std::string folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::string path_of(const BuildId& build_id) const;
  [[nodiscard]] Entry find(const BuildId& build_id) const;
  // For how long an answer "not here" holds.
  [[nodiscard]] std::chrono::seconds miss_age() const;

  // A file on its way, under a temporary name; gone unless it is kept.
  class Arrival {
   public:
    Arrival(UniqueFd fd, OutputFolder folder, std::string temporary);
    Arrival(Arrival&&) noexcept = default;
    Arrival& operator=(Arrival&&) = delete;
    ~Arrival();

    [[nodiscard]] int fd() const { return fd_.get(); }
    Result<void> write(std::span<const std::byte> bytes);
    // Drops what was written, for another try.
    Result<void> restart();
    Result<void> keep();

   private:
    UniqueFd fd_;
    OutputFolder folder_;
    std::string temporary_;
  };
  Result<Arrival> begin(const BuildId& build_id) const;
  Result<void> note_absent(const BuildId& build_id) const;

  // Once a day, removes what has not been read for a week; both numbers are files in the folder.
  void clean() const;

 private:
  [[nodiscard]] std::chrono::seconds number_in(const char* name, std::chrono::seconds otherwise) const;

  std::string folder_;
};

}  // namespace ddprof
