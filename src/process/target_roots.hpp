#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// The root directory that a process sees when it is not ours: in a container, a chroot. Held open, so that
// files can be found below it when the process has ended.
class TargetRoot {
 public:
  explicit TargetRoot(UniqueFd fd) : fd_(std::move(fd)) {}

  // A path that leads there, in this process; nowhere if it is not open.
  [[nodiscard]] std::string path() const;

 private:
  UniqueFd fd_;
};

// Every distinct root once, as long as somebody holds it: containers come and go.
class TargetRoots {
 public:
  // Beyond, files of further roots are found by what their processes have mapped, and nothing beside them.
  static constexpr std::size_t kMaxRoots = 256;

  // Null when the process sees what we see. Fails when it is gone; when its root cannot be held it is one
  // that leads nowhere.
  Result<std::shared_ptr<const TargetRoot>> find_or_open(Pid pid);

 private:
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // mount namespace, device, inode

  friend bool sees_our_root(Pid pid);
  static Key key_of(const std::string& process);

  std::map<Key, std::weak_ptr<const TargetRoot>> roots_;
};

// Whether paths mean the same to a process and to us. Not for one that is gone.
[[nodiscard]] bool sees_our_root(Pid pid);

}  // namespace ddprof
