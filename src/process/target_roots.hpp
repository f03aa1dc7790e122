#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/ids.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// The root directory that a process sees when it is not ours: in a container, a chroot. Held open, so that
// files can be found below it when the process has ended.
class TargetRoot {
 public:
  explicit TargetRoot(UniqueFd fd) : fd_(std::move(fd)) {}

  // A path that leads there, in this process.
  [[nodiscard]] std::string path() const;

 private:
  UniqueFd fd_;
};

// Every distinct root once, as long as somebody holds it: containers come and go.
class TargetRoots {
 public:
  // Beyond, files of further roots are found as long as their process lives.
  static constexpr std::size_t kMaxRoots = 256;

  // Null when the process sees what we see, or is gone.
  std::shared_ptr<const TargetRoot> find_or_open(Pid pid);

 private:
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // mount namespace, device, inode

  static Key key_of(const std::string& process);

  std::map<Key, std::weak_ptr<const TargetRoot>> roots_;
};

}  // namespace ddprof
