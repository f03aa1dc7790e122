#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "process/address_space.hpp"
#include "process/confinement.hpp"
#include "process/file_registry.hpp"
#include "process/foreign_memory.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

struct ThreadState {
  std::string name;
  bool has_ended = false;
};

// What tells one task from another, for people.
struct TaskNames {
  std::string process;
  std::string thread;
  std::shared_ptr<const Confinement> confinement{};   // null: unknown
  std::optional<Pid> namespace_pid{};                 // what the process calls itself, in another namespace
  std::string service{};                              // empty unless the whole host is followed
  FileId program = FileId::none;                      // what the process runs
  std::shared_ptr<const ProcessIdentity> identity{};  // null: not needed yet
};

// Whether a process is to be profiled, as far as filters decide it.
enum class Admission : std::uint8_t { undecided, admitted, excluded };

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
  FileId program = FileId::none;  // what it runs: exec maps it first
  bool has_ended = false;
  bool is_from_proc = false;   // no record has told of its start: its code is in /proc alone
  bool is_backfilled = false;  // /proc/PID/maps was read
  Nanoseconds next_backfill{}, backfill_wait{};  // of code that it has made executable since
  Admission admission = Admission::undecided;    // of this incarnation, and of what it forks
  std::shared_ptr<const Confinement> confinement;
  std::optional<Pid> namespace_pid;
  std::shared_ptr<const ProcessIdentity> started;    // as it was started; null: not read yet
  std::shared_ptr<const ProcessIdentity> identity;   // the same with what it publishes
  std::shared_ptr<const ProcessIdentity> inherited;  // of the program that it was before its exec
  std::optional<PublishedContext> published;
  Nanoseconds next_reading{}, reading_wait{};  // of what it publishes
  bool has_samples = false;                    // since the last reading
  std::optional<std::uint32_t> user;           // effective, as last read
};

// All processes that are followed, brought up to date by records in time order, completed from /proc where
// records cannot reach (processes that were there before us, records that were lost).
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

  // The process, made from /proc when no record has told of it: its names alone, or its code too.
  Process& find_or_introduce(Pid pid);
  Process& find_or_read(Pid pid);
  // Finds out who it is, once per incarnation: for samples of the whole host, while the process lives.
  void identify(Process& process);
  void read_user(Process& process);
  // Reads what identified processes publish of themselves, when they are new and then ever more rarely.
  // Between samples; takes at most a half percent of the time.
  void read_all_published(Nanoseconds now);
  // The same for one process, now. Nothing but what it publishes, and has published before it ended.
  ProcessIdentity read_published(Pid pid);
  [[nodiscard]] const Process* find(Pid pid) const;
  [[nodiscard]] std::uint32_t incarnation_of(Pid pid) const;  // 0 for one that is not known
  [[nodiscard]] std::string_view thread_name(Pid pid, Tid tid) const;
  // As they were in that incarnation; an earlier one is remembered until the period closes.
  [[nodiscard]] TaskNames names(Pid pid, Tid tid, std::uint32_t incarnation) const;
  // Reads /proc/PID/maps again: for code that no record explained. Once for all of it, and then, ever more
  // rarely if that finds nothing, for memory that has become executable, of which no record tells. Returns
  // whether there may be anything new.
  bool backfill(Process& process);

  // Records are missing: some may have told of an end.
  void note_lost_records() { has_lost_records_ = true; }
  // Through which the memory of the processes is read.
  [[nodiscard]] ForeignMemory& memory() { return memory_; }
  // Forgets ended processes and threads, after their period has been closed, and files that no process maps
  // any more. Those of whom more will be told are kept.
  void forget_ended(const absl::flat_hash_set<std::int32_t>& kept = {});
  // How often it was read who a process is.
  [[nodiscard]] std::uint64_t identifications() const { return identifications_; }
  [[nodiscard]] std::size_t size() const { return processes_.size(); }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [pid, process] : processes_) visit(*process);
  }

 private:
  Process& find_or_add(Pid pid);
  AddressSpace& writable_space(Process& process);
  bool find_generated_code(Process& process, Nanoseconds now);
  void map_into(Process& process, Address start, Address end, std::uint64_t file_offset,
                const FileIdentity& identity);

  FileId vdso_of_32_bit(const Process& process, Address start, Address end);
  static void read_confinement_of(Process& process);
  void update_published(Process& process);
  static void mark_what_is_gone(Process& process);
  [[nodiscard]] TaskNames names_of(const Process& process, const std::string& thread) const;

  FileRegistry& files_;
  Follows follows_;
  ForeignMemory memory_;
  absl::flat_hash_map<std::int32_t, std::unique_ptr<Process>> processes_;
  std::uint64_t last_generation_ = 0;
  bool has_lost_records_ = false;
  std::uint64_t identifications_ = 0;
  Nanoseconds last_reading_{}, reading_time_{};
  absl::flat_hash_map<std::tuple<std::int32_t, std::int32_t, std::uint32_t>, TaskNames> before_exec_;
};

// The processes of a period, each identity once: samples carry a position in this list. For one thread.
class IdentityTable {
 public:
  // The position of a process, whose names must live until take(); 0: it has no service (a thread of the
  // kernel, time of no known process).
  std::uint32_t add(Pid pid, const TaskNames& names);
  // Closes the period. A process that was gone before it could be inspected is given what others of its
  // service and container have in common.
  std::vector<ProcessIdentity> take();

 private:
  using Place = std::pair<std::string, std::string>;  // service as labelled, and container

  std::vector<ProcessIdentity> period_{1};
  std::map<ProcessIdentity, std::uint32_t> positions_;
  std::map<std::pair<std::int32_t, const ProcessIdentity*>, std::uint32_t> of_threads_;  // by pid
  std::map<Place, ProcessIdentity> common_;
};

}  // namespace ddprof
