#include "process/target_roots.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace ddprof {

std::string TargetRoot::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

TargetRoots::Key TargetRoots::key_of(const std::string& process) {
  std::error_code ignored;
  struct stat root {};
  if (::stat((process + "/root/").c_str(), &root) != 0) return {};
  return {std::filesystem::read_symlink(process + "/ns/mnt", ignored).string(), root.st_dev, root.st_ino};
}

std::shared_ptr<const TargetRoot> TargetRoots::find_or_open(Pid pid) {
  const std::string process = fmt::format("/proc/{}", to_int(pid));
  const Key key = key_of(process);
  if (key == Key() || key == key_of("/proc/self")) return nullptr;
  if (auto known = roots_.find(key); known != roots_.end()) {
    if (auto root = known->second.lock()) return root;
  }
  std::erase_if(roots_, [](const auto& entry) { return entry.second.expired(); });
  if (roots_.size() >= kMaxRoots) return nullptr;
  UniqueFd fd(::open((process + "/root/").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return nullptr;
  auto root = std::make_shared<const TargetRoot>(std::move(fd));
  roots_.emplace(key, root);
  return root;
}

}  // namespace ddprof
