#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.hpp"
#include "process/file_registry.hpp"
#include "session/file_guard.hpp"
#include "symbol/code_names.hpp"

namespace ddprof {

// Reads lines and inlined calls from debug information, on a thread of its own: that may be large, far away
// or on a file system that hangs, and an export waits for it only so long. What comes too late is there for
// the next period. What was read is kept, in memory and, by build id, in a folder for other runs.
class SourceReader {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Addresses of one file; more weight is read first.
  struct Wanted {
    FileId id = FileId::none;
    std::shared_ptr<const CodeFile> file;
    std::vector<std::uint64_t> addresses;  // hottest first
    std::int64_t weight = 0;
    bool needs_scratch = false;  // found out when it was opened
  };

  // Where the names of a file come from, for people.
  struct Source {
    std::string description;  // "debug information"; empty: none was found
    std::string problem;      // what was refused or damaged; empty: nothing
    std::size_t unread = 0;   // addresses that could not be read in time
  };

  // Keeps nothing on disk without a folder.
  explicit SourceReader(const std::string& cache_folder, const FileGuard& guard = {});
  ~SourceReader();
  SourceReader(const SourceReader&) = delete;
  SourceReader& operator=(const SourceReader&) = delete;

  // Asks for what is not known yet and waits until it has been read, or until the deadline.
  void read(std::vector<Wanted> wanted, Deadline deadline);

  // Lets go of all other files: what was read of them is on disk. Not while something is being read, which
  // the next call makes up for.
  void forget_except(const CodeFiles& files);

  // Of the thread that reads.
  [[nodiscard]] Nanoseconds cpu_time();

  // What is known now. Nothing changes while this lives, so it should not live long.
  class Known;
  [[nodiscard]] Known known();

 private:
  struct Work;

  std::shared_ptr<Work> work_;  // shared with the thread, which may hang longer than we live
  std::thread thread_;          // started by the first request
};

class SourceReader::Known {
 public:
  // Innermost first; none when it has not been read.
  [[nodiscard]] std::optional<std::vector<NamedCall>> find(FileId id, std::uint64_t address) const;
  [[nodiscard]] Source source(FileId id) const;

 private:
  friend class SourceReader;
  explicit Known(Work& work);

  Work& work_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace ddprof
