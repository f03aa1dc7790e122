#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// A control group for the memory of the workers, below the one that we are in, where we may make one: what a
// worker needs beyond its limit is then taken from its own file pages first, and no other process pays for
// it.
class MemoryGroup {
 public:
  // Nothing where there is no memory controller, or it is not ours to divide. `root` is where control groups
  // are mounted, `membership` the text of /proc/self/cgroup.
  static std::optional<MemoryGroup> create(std::uint64_t limit_bytes,
                                           const std::string& root = "/sys/fs/cgroup");
  static std::optional<MemoryGroup> create(std::uint64_t limit_bytes, const std::string& root,
                                           std::string_view membership, std::int64_t pid);

  MemoryGroup(MemoryGroup&& other) noexcept : folder_(std::move(other.folder_)) { other.folder_.clear(); }
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  ~MemoryGroup();  // removes it; all its processes have ended

  // The calling process moves in.
  void enter() const;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  explicit MemoryGroup(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

// When the machine, or the group that the target is in, runs out of memory the kernel shall take us and not
// the target: the worker first, which is large and comes back, then the supervisor.
inline constexpr int kWorkerOomScore = 1000;
inline constexpr int kSupervisorOomScore = 900;
// Of the calling process and those that it forks. Never lowers it; without /proc it stays what it is.
void raise_oom_score(int adjustment);

}  // namespace ddprof
