#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/private_folder.hpp"
#include "base/result.hpp"
#include "export/peer.hpp"

namespace ddprof {

// A request as a file: a head of lines, then the body. The head has the length and the checksum of the body,
// and one of itself, so that a file that was cut anywhere is known to be.
std::string write_request(const UploadRequest& request);
Result<UploadRequest> read_request(std::span<const std::byte> file);

struct SpoolLimits {
  std::uint64_t bytes = std::uint64_t{100} << 20U;
  Nanoseconds age = std::chrono::hours(24);
};

// Requests that no peer has taken yet, each a file in a folder that only this user may read. A request that
// was added is on the disk, whatever happens next; one that was cut short by a crash is skipped and counted.
// Several processes may share a spool: one at a time adds, another one delivers meanwhile. A request that was
// taken just when the machine crashed is delivered again.
class Spool {
 public:
  static Result<Spool> open(const std::string& folder, SpoolLimits limits);

  // What is too old in the spools beside this one: their peers may never be named again.
  void drop_outdated_beside();

  // Makes room by dropping the oldest, of what is too old or too much. Returns the name of the request's
  // file. What one process adds is delivered in that order, whatever the clock does.
  Result<std::string> add(const UploadRequest& request);

  enum class Fate : std::uint8_t {
    delivered,    // removed
    refused,      // removed, and counted as dropped
    passed_over,  // waits on
    waits,        // as do all behind it
  };
  using Attempt = std::function<Fate(const std::string& name, const UploadRequest& request)>;
  // From the oldest to the newest. Does nothing while another process delivers. An error: one of them cannot
  // be read from the disk, and waits on.
  Result<void> deliver(const Attempt& attempt);
  // Counted, if it was still there.
  void drop(const std::string& name);

  [[nodiscard]] bool is_empty() const;

  struct State {
    std::uint64_t requests = 0;  // waiting now
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;  // by this process
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Spool(std::string path, PrivateFolder folder, SpoolLimits limits);

  // By name: requests from the oldest to the newest, and what else there is.
  [[nodiscard]] std::vector<PrivateFile> files() const;
  [[nodiscard]] std::vector<PrivateFile> requests() const;
  // Open when no other process adds; not open when one keeps its turn for too long.
  [[nodiscard]] UniqueFd turn_to_add() const;
  [[nodiscard]] bool is_older(const PrivateFile& file, Nanoseconds age) const;
  [[nodiscard]] bool is_too_old(const PrivateFile& file) const;
  // Returns the requests that are left, which take no more than the bound less `wanted`.
  std::vector<PrivateFile> make_room(const std::vector<PrivateFile>& files, std::uint64_t wanted);

  std::string path_;
  PrivateFolder folder_;
  SpoolLimits limits_;
  Nanoseconds unix_at_boot_;  // as it was when the spool was opened
  std::uint64_t dropped_ = 0;
};

}  // namespace ddprof
