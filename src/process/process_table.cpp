#include "process/process_table.hpp"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

namespace {

bool is_anonymous(std::string_view path) {
  return path.empty() || path == "//anon" || path.starts_with("[heap]") || path.starts_with("[stack") ||
         path.starts_with("[anon") || path.starts_with("/dev/zero") || path.starts_with("/SYSV");
}

// Between two readings of /proc/PID/maps, which takes a millisecond for a process with thousands of mappings.
constexpr Nanoseconds kFirstBackfillWait = std::chrono::milliseconds(100);
constexpr Nanoseconds kLongestBackfillWait = std::chrono::seconds(30);

constexpr std::string_view kDeleted = " (deleted)";

// No 64-bit process has its vdso below.
constexpr std::uint64_t kEndOf32Bit = std::uint64_t{1} << 32U;

// Names of programs that were replaced within one period; beyond, the new name stands for the old one too.
constexpr std::size_t kMaxNamesBeforeExec = 65536;

}  // namespace

Process& ProcessTable::find_or_add(Pid pid) {
  auto& slot = processes_[to_int(pid)];
  if (!slot) {
    slot = std::make_unique<Process>();
    slot->pid = pid;
    slot->space = std::make_shared<AddressSpace>();
    slot->generation = ++last_generation_;
    read_confinement_of(*slot);
  }
  return *slot;
}

void ProcessTable::read_confinement_of(Process& process) {
  process.confinement = read_confinement(process.pid);
  process.namespace_pid = read_namespace_pid(process.pid);
}

AddressSpace& ProcessTable::writable_space(Process& process) {
  if (process.space.use_count() > 1) process.space = std::make_shared<AddressSpace>(*process.space);
  process.generation = ++last_generation_;
  return const_cast<AddressSpace&>(*process.space);  // ours alone: never handed out but as const
}

FileId ProcessTable::vdso_of_32_bit(const Process& process, Address start, Address end) {
  return files_.vdso_32(process.user, [&] {
    constexpr std::uint64_t kMostBytes = 65536;  // it has two pages
    std::vector<std::byte> bytes(std::min(end - start, kMostBytes));
    bytes.resize(memory_.read(process.pid, start, bytes));
    return bytes;
  });
}

void ProcessTable::map_into(Process& process, Address start, Address end, std::uint64_t file_offset,
                            const FileIdentity& identity) {
  CodeMapping mapping{.start = start, .end = end, .file_offset = file_offset};
  if (identity.path == "[vdso]") {
    mapping.file = start.value < kEndOf32Bit ? vdso_of_32_bit(process, start, end) : files_.vdso();
  } else if (is_anonymous(identity.path)) {
    mapping.file = files_.find_or_add_jit(process.pid);
    mapping.file_offset = start.value;  // as the kernel's records have it; /proc/PID/maps has 0 for all
  } else if (identity.path.starts_with('[')) {
    mapping.file = FileId::none;  // [vsyscall], [uprobes]
  } else {
    FileIdentity opened = identity;
    if (opened.path.ends_with(kDeleted)) opened.path.resize(opened.path.size() - kDeleted.size());
    mapping.file = files_.find_or_open(process.pid, start, end, opened, process.user);
  }
  const bool is_file =
      mapping.file != FileId::none && !is_anonymous(identity.path) && identity.path != "[vdso]";
  if (is_file && process.program == FileId::none) process.program = mapping.file;
  writable_space(process).map(mapping);
}

void ProcessTable::map(Pid pid, Address start, std::uint64_t length, std::uint64_t file_offset,
                       const FileIdentity& identity) {
  map_into(find_or_add(pid), start, start + length, file_offset, identity);
}

void ProcessTable::fork(Pid pid, Pid parent, Tid tid, Tid parent_tid) {
  std::string name(thread_name(parent, parent_tid));
  if (pid != parent) {
    // A child runs its parent's code. What is not profiled is not looked into, nor are its children.
    const Process& introduced = find_or_introduce(parent);
    const Process& from = introduced.admission == Admission::excluded ? introduced : find_or_read(parent);
    auto child = std::make_unique<Process>();
    child->pid = pid;
    child->name = from.name;
    child->space = from.space;
    child->generation = from.generation;
    child->program = from.program;
    child->confinement = from.confinement;
    child->admission = from.admission;
    child->started = child->identity = from.started;
    child->inherited = from.inherited;
    child->user = from.user;
    if (from.namespace_pid) child->namespace_pid = read_namespace_pid(pid);
    processes_[to_int(pid)] = std::move(child);  // a reused PID starts anew
  }
  // A thread may be the first that is heard of a process that has been running for long.
  Process& process = find_or_introduce(pid);
  process.has_ended = false;
  if (!process.threads.contains(to_int(tid))) process.living_threads++;
  process.threads[to_int(tid)] = {std::move(name)};
}

void ProcessTable::rename(Pid pid, Tid tid, std::string_view name, bool is_exec) {
  Process& process = find_or_add(pid);
  if (is_exec) {
    for (const auto& [thread, state] : process.threads) {
      if (before_exec_.size() < kMaxNamesBeforeExec) {
        before_exec_[{to_int(pid), thread, process.incarnation}] = names_of(process, state.name);
      }
    }
    process.incarnation++;
    memory_.forget(pid);
    process.threads.clear();
    process.space = std::make_shared<AddressSpace>();
    process.generation = ++last_generation_;
    process.program = FileId::none;
    process.is_from_proc = process.is_backfilled = process.has_ended = false;
    process.next_backfill = process.backfill_wait = {};
    process.admission = Admission::undecided;
    if (process.started) process.inherited = std::exchange(process.started, nullptr);
    process.identity = nullptr;
    process.published.reset();
    process.next_reading = process.reading_wait = {};
    process.living_threads = 1;  // exec ends all other threads
    if (follows_ == Follows::whole_host) read_confinement_of(process);
  }
  if (is_exec || to_int(tid) == to_int(pid)) process.name = name;
  process.threads[to_int(tid)].name = name;
}

void ProcessTable::exit(Pid pid, Tid tid) {
  auto known = processes_.find(to_int(pid));
  if (known == processes_.end()) return;
  Process& process = *known->second;
  if (auto thread = process.threads.find(to_int(tid)); thread != process.threads.end())
    thread->second.has_ended = true;
  if (process.living_threads > 0) process.living_threads--;
  if (process.living_threads > 0) return;
  process.has_ended = true;
  memory_.forget(pid);
}

bool ProcessTable::backfill(Process& process) {
  const Nanoseconds now = monotonic_now();
  if (process.is_backfilled) return find_generated_code(process, now);
  process.next_backfill = now + kFirstBackfillWait;
  const auto text = memory_.read_file(process.pid, "maps", kMaxMapsBytes);
  process.is_backfilled = text.ok() || text.error().code != ErrorCode::exhausted;  // else it may be later
  if (!text) return false;
  // Mappings are listed by address, where libraries can come first.
  const std::string program = read_proc_link(process.pid, "exe");
  for (const ProcMapsLine& line : parse_executable_maps(*text)) {
    FileIdentity identity{.path = std::string(line.path),
                          .device_major = line.device_major,
                          .device_minor = line.device_minor,
                          .inode = line.inode};
    map_into(process, line.start, line.end, line.file_offset, identity);
    if (line.path == program) process.program = process.space->find(line.start)->file;
  }
  return true;
}

bool ProcessTable::find_generated_code(Process& process, Nanoseconds now) {
  if (now < process.next_backfill) return false;
  const auto text = memory_.read_file(process.pid, "maps", kMaxMapsBytes);
  bool has_new = false;
  if (text) {
    for (const ProcMapsLine& line : parse_executable_maps(*text)) {
      if (!is_anonymous(line.path)) continue;
      const CodeMapping* known = process.space->find(line.start);
      if (known != nullptr && known->start == line.start && known->end == line.end) continue;
      map_into(process, line.start, line.end, line.file_offset, FileIdentity{.path = std::string(line.path)});
      has_new = true;
    }
  }
  process.backfill_wait =
      has_new ? kFirstBackfillWait
              : std::clamp(process.backfill_wait * 2, kFirstBackfillWait, kLongestBackfillWait);
  process.next_backfill = now + process.backfill_wait;
  return has_new;
}

Process& ProcessTable::find_or_introduce(Pid pid) {
  if (auto known = processes_.find(to_int(pid)); known != processes_.end()) return *known->second;
  Process& process = find_or_add(pid);
  auto name = read_thread_name(pid, Tid{to_int(pid)});
  process.is_from_proc = true;
  // A sample of a task that was ending, after its last record: nothing will tell of its end again.
  process.has_ended = !name;
  if (name) process.name = *std::move(name);
  for (const Tid tid : list_threads(pid)) {
    auto thread_name = read_thread_name(pid, tid);
    if (!thread_name) continue;
    process.threads[to_int(tid)].name = *std::move(thread_name);
    process.living_threads++;
  }
  return process;
}

Process& ProcessTable::find_or_read(Pid pid) {
  Process& process = find_or_introduce(pid);
  if (process.is_from_proc) backfill(process);
  return process;
}

void ProcessTable::identify(Process& process) {
  process.has_samples = true;
  if (process.started) return;
  ++identifications_;
  ProcessIdentity identity = read_process_identity(process.pid, *process.confinement, memory_);
  // One that is gone already had what it was configured with before its exec.
  if (!identity.is_read && process.inherited && process.inherited->is_configured)
    identity = *process.inherited;
  process.started = process.identity = std::make_shared<const ProcessIdentity>(std::move(identity));
}

void ProcessTable::update_published(Process& process) {
  if (process.published && is_still_published(process.pid, *process.published, memory_)) return;
  auto published = read_published_context(process.pid, memory_);
  if (!published) return;  // what it said before holds
  process.published = std::move(published);
  if (process.started)
    process.identity =
        std::make_shared<const ProcessIdentity>(with_published(*process.started, process.published->context));
}

// Every reading holds up the process's calls of mmap(), and most processes never publish anything.
void ProcessTable::read_all_published(Nanoseconds now) {
  constexpr Nanoseconds kFirstWait = std::chrono::seconds(1), kLongestWait = std::chrono::minutes(10);
  constexpr Nanoseconds kMostAtOnce = std::chrono::milliseconds(5);
  constexpr int kRestFactor = 200;
  reading_time_ =
      std::min(kMostAtOnce, reading_time_ + (now - std::exchange(last_reading_, now)) / kRestFactor);
  if (reading_time_.count() <= 0) return;
  for (auto& [pid, process] : processes_) {
    const bool is_sampled = process->has_samples && process->admission != Admission::excluded;
    if (!is_sampled || !process->started || process->has_ended || now < process->next_reading) continue;
    const Nanoseconds begin = monotonic_now();
    update_published(*process);
    process->reading_wait = std::clamp(process->reading_wait * 10, kFirstWait, kLongestWait);
    process->next_reading = now + process->reading_wait;
    process->has_samples = false;
    reading_time_ -= monotonic_now() - begin;
    if (reading_time_.count() <= 0) return;
  }
}

ProcessIdentity ProcessTable::read_published(Pid pid) {
  const auto known = processes_.find(to_int(pid));
  if (known == processes_.end()) return {};
  update_published(*known->second);
  const auto& published = known->second->published;
  return published ? with_published({}, published->context) : ProcessIdentity();
}

void ProcessTable::read_user(Process& process) {
  if (auto user = read_effective_user(process.pid)) process.user = user;
}

const Process* ProcessTable::find(Pid pid) const {
  auto known = processes_.find(to_int(pid));
  return known == processes_.end() ? nullptr : known->second.get();
}

std::uint32_t ProcessTable::incarnation_of(Pid pid) const {
  const Process* process = find(pid);
  return process != nullptr ? process->incarnation : 0;
}

std::string_view ProcessTable::thread_name(Pid pid, Tid tid) const {
  const Process* process = find(pid);
  if (process == nullptr) return {};
  auto known = process->threads.find(to_int(tid));
  return known == process->threads.end() ? process->name : known->second.name;
}

TaskNames ProcessTable::names(Pid pid, Tid tid, std::uint32_t incarnation) const {
  const Process* process = find(pid);
  if (process == nullptr) return {};
  auto earlier = before_exec_.find({to_int(pid), to_int(tid), incarnation});
  const bool is_earlier = incarnation != process->incarnation && earlier != before_exec_.end();
  TaskNames names = is_earlier ? earlier->second : names_of(*process, std::string(thread_name(pid, tid)));
  names.program = files_.resolved(names.program);
  return names;
}

TaskNames ProcessTable::names_of(const Process& process, const std::string& thread) const {
  TaskNames names{process.name, thread, process.confinement, process.namespace_pid, {}, process.program};
  if (!process.started || follows_ == Follows::one_target) return names;
  names.identity = process.identity;
  // Code without a file to name it ran in a program that was gone too soon. The kernel's threads have none.
  const bool has_code = !process.space->mappings().empty();
  names.service = process.started->program.empty() && has_code ? process.name : process.started->program;
  return names;
}

void ProcessTable::mark_what_is_gone(Process& process) {
  absl::flat_hash_set<std::int32_t> living;
  for (const Tid tid : list_threads(process.pid)) living.insert(to_int(tid));
  process.has_ended = living.empty();
  for (auto& [tid, thread] : process.threads) thread.has_ended = !living.contains(tid);
}

void ProcessTable::forget_ended(const absl::flat_hash_set<std::int32_t>& kept) {
  before_exec_.clear();
  if (std::exchange(has_lost_records_, false)) {
    for (auto& entry : processes_) mark_what_is_gone(*entry.second);
  }
  absl::erase_if(processes_, [&](const auto& entry) {
    return entry.second->has_ended && !kept.contains(to_int(entry.second->pid));
  });
  absl::flat_hash_set<FileId> mapped;
  for (auto& [pid, process] : processes_) {
    if (!process->has_ended)
      absl::erase_if(process->threads, [](const auto& thread) { return thread.second.has_ended; });
    mapped.insert(process->program);
    for (const CodeMapping& mapping : process->space->mappings()) mapped.insert(mapping.file);
  }
  files_.forget_unused(mapped);
}

std::uint32_t IdentityTable::add(Pid pid, const TaskNames& names) {
  if (names.service.empty() || names.identity == nullptr || to_int(pid) <= 0) return 0;
  // A process may have thousands of threads.
  const auto [thread, is_first] = of_threads_.try_emplace({to_int(pid), names.identity.get()}, 0);
  if (!is_first) return thread->second;
  ProcessIdentity identity = *names.identity;
  identity.pid = to_int(pid);
  if (identity.service.empty()) identity.service = identity.program = names.service;
  const auto position = static_cast<std::uint32_t>(period_.size());
  const auto [known, is_new] = positions_.try_emplace(std::move(identity), position);
  if (is_new) period_.push_back(known->first);
  return thread->second = known->second;
}

std::vector<ProcessIdentity> IdentityTable::take() {
  constexpr std::size_t kMostPlaces = 4096;
  if (common_.size() > kMostPlaces) common_.clear();
  const auto place_of = [](const ProcessIdentity& one) { return Place{one.program, one.container_id}; };
  for (const ProcessIdentity& one : period_) {
    if (!one.is_read) continue;
    ProcessIdentity& common = common_.insert_or_assign(place_of(one), one).first->second;
    common.instance_id.clear();
    common.process_tags.clear();
  }
  for (ProcessIdentity& one : period_) {
    const auto known = one.is_read ? common_.end() : common_.find(place_of(one));
    if (known == common_.end()) continue;
    const std::int64_t pid = std::exchange(one, known->second).pid;
    one.pid = pid;
  }
  positions_.clear();
  of_threads_.clear();
  return std::exchange(period_, std::vector<ProcessIdentity>(1));
}

}  // namespace ddprof
