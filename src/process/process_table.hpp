#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/ids.hpp"
#include "process/address_space.hpp"
#include "process/confinement.hpp"
#include "process/file_registry.hpp"

namespace ddprof {

struct ThreadState {
  std::string name;
  bool has_ended = false;
};

// What tells one task from another, for people.
struct TaskNames {
  std::string process;
  std::string thread;
  std::shared_ptr<const Confinement> confinement{};  // null: unknown
  std::optional<Pid> namespace_pid{};                // what the process calls itself, in another namespace
};

// One process as the records describe it. Its address space is shared with the child after a fork until
// either of them maps something; `generation` names the content, so that whatever is derived from it can be
// shared too.
struct Process {
  Pid pid{};
  std::string name;
  std::shared_ptr<const AddressSpace> space;
  std::uint64_t generation = 0;
  absl::flat_hash_map<std::int32_t, ThreadState>
      threads;  // living ones and, until the period closes, ended ones
  std::uint32_t living_threads = 0;
  std::uint32_t incarnation = 0;  // counts execs
  bool has_ended = false;
  bool is_backfilled = false;  // /proc/PID/maps was read
  std::shared_ptr<const Confinement> confinement;
  std::optional<Pid> namespace_pid;
};

// All processes that are followed, kept current by records in time order, completed from /proc where records
// cannot reach (processes that were there before us, records that were lost).
class ProcessTable {
 public:
  // Programs of the whole host enter containers; those of one target stay in the one that it was started in.
  enum class Follows { one_target, whole_host };
  explicit ProcessTable(FileRegistry& files, Follows follows = Follows::one_target)
      : files_(files), follows_(follows) {}

  void map(Pid pid, Address start, std::uint64_t length, std::uint64_t file_offset,
           const FileIdentity& identity);
  void fork(Pid pid, Pid parent, Tid tid, Tid parent_tid);
  void rename(Pid pid, Tid tid, std::string_view name, bool is_exec);
  void exit(Pid pid, Tid tid);

  // The process, made from /proc when no record has told of it.
  Process& find_or_read(Pid pid);
  [[nodiscard]] const Process* find(Pid pid) const;
  [[nodiscard]] std::string_view thread_name(Pid pid, Tid tid) const;
  // As they were in that incarnation; an earlier one is remembered until the period closes.
  [[nodiscard]] TaskNames names(Pid pid, Tid tid, std::uint32_t incarnation) const;
  // Reads /proc/PID/maps again, once: for code that no record explained. Returns whether anything was read.
  bool backfill(Process& process);

  // Forgets ended processes and threads, after their period has been closed.
  void forget_ended();
  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [pid, process] : processes_) visit(*process);
  }

 private:
  Process& find_or_add(Pid pid);
  AddressSpace& writable_space(Process& process);
  void map_into(Process& process, Address start, Address end, std::uint64_t file_offset,
                const FileIdentity& identity);

  static void read_confinement_of(Process& process);

  FileRegistry& files_;
  Follows follows_;
  absl::flat_hash_map<std::int32_t, std::unique_ptr<Process>> processes_;
  std::uint64_t last_generation_ = 0;
  absl::flat_hash_map<std::tuple<std::int32_t, std::int32_t, std::uint32_t>, TaskNames> before_exec_;
};

}  // namespace ddprof
