#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "process/confinement.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

// Finds the running processes that a user means: by number, by name, by container. Container runtimes keep
// the names that they give in files of their own; what a process itself shows is enough for many of them.
class ProcessSearch {
 public:
  // Where it looks. What cannot be read is empty.
  struct Source {
    std::function<std::vector<RunningProcess>()> list;
    std::function<std::string(Pid)> executable;
    std::function<Confinement(Pid)> confinement;
    std::function<std::string(Pid)> host_name;  // as its container calls itself; empty outside of one
    std::function<std::optional<RunningProcess>(std::int32_t)> of_task;  // the process of a thread
  };
  static Source this_host();

  explicit ProcessSearch(Source source = this_host(), Pid self = Pid{::getpid()})
      : source_(std::move(source)), self_(self) {}

  // The process with that number, or the one of the thread with that number.
  [[nodiscard]] Result<Pid> by_number(std::int32_t number) const;
  // All whose name or executable matches a condition such as "name:nginx" (see ProcessCondition), those that
  // are children of others behind these.
  [[nodiscard]] Result<std::vector<Pid>> by_name(const std::string& condition) const;

  struct Container {
    std::vector<Pid> pids;
    bool is_named = false;  // found by a name, not by its id
  };
  // All of one container: by its id or the beginning of it, by a name in the path of its control groups, or
  // by its host name, which is the name of a pod in Kubernetes. All containers of a pod, by the pod's name or
  // id.
  [[nodiscard]] Result<Container> by_container(const std::string& text) const;

 private:
  struct Confined;

  // All that have not ended, but the caller.
  [[nodiscard]] std::vector<RunningProcess> others() const;
  [[nodiscard]] Error no_container(const std::string& text, const std::vector<Confined>& seen) const;

  Source source_;
  Pid self_;
};

// Names of containers in the path of a control group: "web" in "/lxc.payload.web/…", "/lxc/web",
// "/machine.slice/machine-web.scope"; the id of a pod in "…/kubepods-pod12ab_34cd.slice/…", with dashes.
[[nodiscard]] std::vector<std::string> container_names_in(std::string_view cgroup_path);

}  // namespace ddprof
