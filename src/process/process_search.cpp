#include "process/process_search.hpp"

#include <absl/container/flat_hash_set.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/nearest.hpp"
#include "process/process_filter.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

namespace {

// Every container runtime sets the variable. Outside of containers shells do too, to the name of the machine.
std::string host_name_in_container(Pid pid) {
  const std::uint64_t own = inode_of(proc_path(Pid{::getpid()}, "ns/uts"));
  const std::uint64_t its = inode_of(proc_path(pid, "ns/uts"));
  const bool is_elsewhere = own != 0 && its != 0 && own != its;
  return is_elsewhere || !read_confinement(pid)->container_id.empty() ? read_variable(pid, "HOSTNAME") : "";
}

std::optional<RunningProcess> process_of_task(std::int32_t number) {
  const auto pids = status_numbers(read_proc_file(Pid{number}, "status").value_or(""), "Tgid");
  return pids.empty() ? std::nullopt : read_process(static_cast<std::int32_t>(pids[0]));
}

// "web\x2d1" of systemd is "web-1".
std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned code = 0;
    const bool is_escape = text.size() >= 4 && text.starts_with("\\x") &&
                           std::from_chars(text.data() + 2, text.data() + 4, code, 16).ptr == text.data() + 4;
    plain += is_escape ? static_cast<char>(code) : text[0];
    text.remove_prefix(is_escape ? 4 : 1);
  }
  return plain;
}

// What is between `begin` and `end`; empty when it is not of that form.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return {};
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

std::string pod_id_in(std::string_view part) {
  std::string_view id = between(part, "pod", "");
  if (const std::size_t at = part.rfind("-pod");
      id.empty() && part.starts_with("kubepods") && at != part.npos)
    id = between(part.substr(at + 1), "pod", ".slice");
  std::string plain(id);
  std::replace(plain.begin(), plain.end(), '_', '-');
  return plain;
}

std::vector<Pid> parents_first(const std::vector<RunningProcess>& processes) {
  absl::flat_hash_set<std::int32_t> all;
  for (const RunningProcess& process : processes) all.insert(to_int(process.pid));
  std::vector<Pid> pids, children;
  for (const RunningProcess& process : processes)
    (all.contains(to_int(process.parent)) ? children : pids).push_back(process.pid);
  pids.insert(pids.end(), children.begin(), children.end());
  return pids;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> container_names_in(std::string_view path) {
  std::vector<std::string> names;
  std::string_view above;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    std::string name(between(part, "lxc.payload.", ""));
    if (above == "lxc" || above == "lxc.payload") name = part;
    if (name.empty()) name = unescaped(between(part, "machine-", ".scope"));
    if (name.empty()) name = unescaped(between(part, "systemd-nspawn@", ".service"));
    if (name.empty()) name = pod_id_in(part);
    if (!name.empty()) names.push_back(std::move(name));
    above = part;
  }
  return names;
}

ProcessSearch::Source ProcessSearch::this_host() {
  return {.list = list_processes,
          .executable = read_executable_name,
          .confinement = [](Pid pid) { return *read_confinement(pid); },
          .host_name = host_name_in_container,
          .of_task = process_of_task};
}

struct ProcessSearch::Confined {
  RunningProcess process;
  std::string id;
  std::vector<std::string> names;
};

std::vector<RunningProcess> ProcessSearch::others() const {
  std::vector<RunningProcess> processes = source_.list();
  std::erase_if(processes,
                [&](const RunningProcess& process) { return process.has_ended() || process.pid == self_; });
  return processes;
}

Result<Pid> ProcessSearch::by_number(std::int32_t number) const {
  const auto process = source_.of_task(number);
  std::string_view problem;
  if (!process) {
    problem = "no such process";
  } else if (process->pid == self_) {
    problem = "that is ddprof itself";
  } else if (process->has_ended()) {
    problem = "it has ended, and its parent has not noticed yet";
  }
  if (problem.empty()) return process->pid;
  return with_hint(make_error(ErrorCode::not_found, "attach to process {}: {}", number, problem),
                   "ps -e lists processes; -p name:NAME takes those of that name");
}

Result<std::vector<Pid>> ProcessSearch::by_name(const std::string& text) const {
  const ProcessCondition condition = TRY(ProcessCondition::parse(text));
  std::vector<RunningProcess> found;
  std::vector<std::string> names;
  for (const RunningProcess& process : others()) {
    names.push_back(fit_to_be_shown(process.name));
    const FilterFacts facts{.name = process.name, .executable = source_.executable(process.pid)};
    if (condition.matches(facts)) found.push_back(process);
  }
  if (!found.empty()) return parents_first(found);
  const std::string_view name = std::string_view(text).substr(text.find(':') + 1);
  const std::vector<std::string_view> known(names.begin(), names.end());
  return with_hint(
      make_error(ErrorCode::not_found, "-p {}: no process has that name{}", text, did_you_mean(name, known)),
      "a name as ps -e shows it (15 bytes at most) or that of the executable; * stands for any "
      "text");
}

Result<ProcessSearch::Container> ProcessSearch::by_container(const std::string& text) const {
  std::vector<Confined> confined;
  for (RunningProcess& process : others()) {
    const Confinement found = source_.confinement(process.pid);
    confined.push_back({std::move(process), found.container_id, container_names_in(found.cgroup)});
  }
  const auto pids_where = [&](auto is_meant) {
    std::vector<RunningProcess> meant;
    for (const Confined& one : confined)
      if (is_meant(one)) meant.push_back(one.process);
    return parents_first(meant);
  };
  if (auto pids = pids_where([&](const Confined& one) { return one.id == text; }); !pids.empty())
    return Container{std::move(pids)};
  if (auto pids = pids_where([&](const Confined& one) { return has(one.names, text); }); !pids.empty())
    return Container{std::move(pids), true};

  std::set<std::string> ids;
  for (const Confined& one : confined)
    if (one.id.starts_with(text)) ids.insert(one.id);
  if (ids.size() > 1)
    return make_error(ErrorCode::invalid_argument, "--container {}: several begin so: {}", text,
                      fmt::join(ids, ", "));
  if (ids.size() == 1)
    return Container{pids_where([&](const Confined& one) { return one.id == *ids.begin(); })};

  // By host name last: it is the only thing that a process can choose itself.
  absl::flat_hash_set<std::int32_t> of_host;
  for (const Confined& one : confined) {
    if (source_.host_name(one.process.pid) != text) continue;
    of_host.insert(to_int(one.process.pid));
    if (!one.id.empty()) ids.insert(one.id);
  }
  auto pids = pids_where(
      [&](const Confined& one) { return ids.contains(one.id) || of_host.contains(to_int(one.process.pid)); });
  if (pids.empty()) return no_container(text, confined);
  return Container{std::move(pids), true};
}

Error ProcessSearch::no_container(const std::string& text, const std::vector<Confined>& seen) const {
  constexpr std::size_t kShown = 8;
  constexpr std::size_t kIdBytes = 12;
  std::map<std::string, std::string> containers;  // by id, or name
  for (const Confined& one : seen) {
    if (one.id.empty() && one.names.empty()) continue;
    std::string& name = containers[one.id.empty() ? one.names.back() : one.id];
    if (name.empty() && !one.id.empty()) name = fit_to_be_shown(source_.host_name(one.process.pid));
  }
  std::vector<std::string> shown;
  for (const auto& [key, name] : containers) {
    if (shown.size() == kShown) break;
    const std::string id = fit_to_be_shown(key.size() == 64 ? key.substr(0, kIdBytes) : key);
    shown.push_back(name.empty() || id.starts_with(name) ? id : fmt::format("{} ({})", id, name));
  }
  if (shown.empty())
    return with_hint(make_error(ErrorCode::not_found, "--container {}: no container is seen from here", text),
                     "run ddprof on the host, or in a container that shares its process ids");
  const std::size_t more = containers.size() - shown.size();
  return with_hint(
      make_error(ErrorCode::not_found, "--container {}: no such container; there are {}{}", text,
                 fmt::join(shown, ", "), more > 0 ? fmt::format(" and {} more", more) : ""),
      "the beginning of its id, or its host name; names that only the container runtime knows: docker ps, "
      "crictl ps");
}

}  // namespace ddprof
