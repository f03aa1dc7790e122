#include "session/source_reader.hpp"

#include <absl/container/flat_hash_map.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "base/private_folder.hpp"
#include "base/turns.hpp"
#include "debugfile/debuginfod_client.hpp"
#include "session/disk_scratch.hpp"
#include "session/module_reader.hpp"

namespace ddprof {

namespace {

using namespace std::chrono_literals;

// Read before the rest, in case that time runs out.
constexpr std::size_t kHottestAddresses = 256;
// What stays open for the next period: indexes, and what had to be unpacked.
constexpr std::size_t kMaxOpenBytes = std::size_t{32} << 20;
// Names in memory. Beyond, those of the files that were not asked for last are dropped: they are on disk.
constexpr std::size_t kMaxHeldNameBytes = std::size_t{32} << 20;
constexpr std::uint64_t kMaxFolderBytes = std::uint64_t{256} << 20;
// How long the end of a run waits for a thread that hangs in a file system.
constexpr auto kMaxHang = 2s;
constexpr auto kBetweenLooks = 50ms;  // at whether a server has answered

PrivateFolder open_names_folder(const std::string& cache_folder) {
  if (cache_folder.empty()) return {};
  auto folder = PrivateFolder::open(cache_folder);
  if (!folder) return {};
  return folder->folder("names").value_or({});
}

struct NamedModule {
  std::shared_ptr<const CodeFile> file;
  CodeNames names;
  SourceReader::Source source;
  bool has_nothing = false;  // looking again would find nothing either
  bool is_kept = false;      // on disk: not where a debug file that comes later would tell more
  std::size_t saved = 0;     // how many addresses the file on disk has
};

using OpenModules = absl::flat_hash_map<std::uint32_t, std::unique_ptr<ModuleReader>>;

void close_beyond_budget(OpenModules& open) {
  std::size_t bytes = 0;
  absl::erase_if(open, [&](const auto& entry) {
    bytes += entry.second->memory_bytes();
    return bytes > kMaxOpenBytes;
  });
}

// Files that others could write too count as one user's.
std::uint32_t user_of(const SourceReader::Wanted& wanted) {
  return wanted.file->owner.value_or(std::numeric_limits<std::uint32_t>::max());
}

// Whether it is worth to wait for one of the answers.
bool ask_servers(DebuginfodClient& servers, const ModuleReader& reader, const SourceReader::Wanted& wanted) {
  bool is_pending = false;
  for (const BuildId& build_id : reader.missing()) {
    servers.post_request(build_id, static_cast<std::uint64_t>(std::max<std::int64_t>(wanted.weight, 0)));
    is_pending = servers.is_pending(build_id) || is_pending;
  }
  return is_pending;
}

// Why servers could not tell whether they have what is missing.
std::string server_problem(const DebuginfodClient& servers, const ModuleReader& reader) {
  for (const BuildId& build_id : reader.missing()) {
    const DebuginfodStatus status = servers.status(build_id);
    if (status.state == DebuginfodState::failed) return status.reason;
  }
  return "";
}

}  // namespace

// What both threads know.
struct SourceReader::Work {
  Work(const std::string& cache_folder, const FileGuard& file_guard)
      : folder(open_names_folder(cache_folder)), guard(file_guard) {
    if (folder.is_open()) scratch.emplace(folder);
  }

  NamedModule& module_of(const Wanted& wanted);
  // What is new; false when nothing is.
  bool save(NamedModule& module) const;
  std::size_t count_unread(const Wanted& wanted);
  void trim_memory(const std::vector<Wanted>& in_use);
  void forget_except(const CodeFiles& files);

  void run();
  void wait_for_work(std::unique_lock<std::mutex>& lock, const DebuginfodClient* servers);
  Wanted take_next();
  enum class Outcome { read, awaits_server, awaits_turn };
  Result<Outcome> read_file(Wanted& wanted, DebugFileFinder& finder, DebuginfodClient* servers);
  void read_module(ModuleReader& reader, Wanted& wanted, const std::string& server_problem);
  void refuse(const Wanted& wanted, const Error& error);
  bool read_part(ModuleReader& reader, FileId id, std::span<std::uint64_t> addresses);
  void take(FileId id, std::uint64_t address, std::span<const SourceCall> calls);
  [[nodiscard]] bool keeps_going();
  [[nodiscard]] bool is_done() const { return queue.empty() && awaiting.empty() && !is_busy; }

  const PrivateFolder folder;
  const FileGuard guard;
  std::optional<DiskScratch> scratch;  // the reading thread's
  std::mutex mutex;                    // guards everything below
  std::condition_variable changed;
  absl::flat_hash_map<std::uint32_t, NamedModule> modules;  // by FileId
  OpenModules open;                                         // the reading thread's while it is busy
  std::vector<Wanted> queue;
  absl::flat_hash_map<std::uint32_t, Nanoseconds> time_of_users;  // that reading their files took
  std::vector<Wanted> awaiting;  // a server has been asked for their debug files
  std::size_t answers_seen = 0;  // of servers, when `awaiting` was looked at
  bool is_busy = false;
  bool is_stopping = false;
  bool has_stopped = false;
};

NamedModule& SourceReader::Work::module_of(const Wanted& wanted) {
  auto [entry, is_new] = modules.try_emplace(to_int(wanted.id));
  NamedModule& module = entry->second;
  if (!is_new) return module;
  module.file = wanted.file;
  const std::string key = wanted.file->cache_key();
  if (!folder.is_open() || key.empty()) return module;
  auto image = folder.read(key);
  if (!image) return module;
  module.names = CodeNames::from_image(*std::move(image), key).value_or({});
  module.saved = module.names.size();
  if (module.names.size() != 0) module.source.description = "debug information, as kept from an earlier run";
  return module;
}

bool SourceReader::Work::save(NamedModule& module) const {
  const std::string key = module.file->cache_key();
  if (!folder.is_open() || !module.is_kept || key.empty() || module.names.size() == module.saved)
    return false;
  module.saved = module.names.size();
  // A disk without room costs the next run some time, and nothing else.
  return folder.write(key, module.names.image(key)).ok();
}

std::size_t SourceReader::Work::count_unread(const Wanted& wanted) {
  const NamedModule& module = module_of(wanted);
  if (module.has_nothing) return 0;
  return static_cast<std::size_t>(
      std::count_if(wanted.addresses.begin(), wanted.addresses.end(),
                    [&](std::uint64_t address) { return !module.names.contains(address); }));
}

void SourceReader::Work::trim_memory(const std::vector<Wanted>& in_use) {
  std::size_t bytes = 0;
  for (const auto& [id, module] : modules) bytes += module.names.memory_bytes();
  if (bytes <= kMaxHeldNameBytes || is_busy) return;
  absl::erase_if(modules, [&](auto& entry) {
    const bool is_in_use = std::any_of(in_use.begin(), in_use.end(),
                                       [&](const Wanted& one) { return to_int(one.id) == entry.first; });
    if (!is_in_use) save(entry.second);
    return !is_in_use;
  });
}

void SourceReader::Work::forget_except(const CodeFiles& files) {
  if (is_busy) return;
  const auto is_gone = [&](FileId id) { return !files.contains(id); };
  std::erase_if(queue, [&](const Wanted& one) { return is_gone(one.id); });
  std::erase_if(awaiting, [&](const Wanted& one) { return is_gone(one.id); });
  absl::erase_if(open, [&](const auto& entry) { return is_gone(static_cast<FileId>(entry.first)); });
  absl::erase_if(modules, [&](auto& entry) {
    if (!is_gone(static_cast<FileId>(entry.first))) return false;
    save(entry.second);
    return true;
  });
}

bool SourceReader::Work::keeps_going() {
  std::lock_guard lock(mutex);
  return !is_stopping;
}

void SourceReader::Work::take(FileId id, std::uint64_t address, std::span<const SourceCall> calls) {
  std::lock_guard lock(mutex);
  NamedModule& module = modules[to_int(id)];
  const bool has_room = module.names.memory_bytes() < guard.limits.bytes() / 2;
  module.names.add(address, has_room ? calls : calls.first(0));
}

// False when it was stopped.
bool SourceReader::Work::read_part(ModuleReader& reader, FileId id, std::span<std::uint64_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  const std::size_t done = reader.read(
      addresses, [&](std::uint64_t address, std::span<const SourceCall> calls) { take(id, address, calls); },
      [&] { return keeps_going(); });
  return done == addresses.size();
}

void SourceReader::Work::read_module(ModuleReader& reader, Wanted& wanted,
                                     const std::string& server_problem) {
  if (reader.has_anything()) {
    const std::span all(wanted.addresses);
    const std::size_t first = std::min(all.size(), kHottestAddresses);
    if (read_part(reader, wanted.id, all.first(first))) read_part(reader, wanted.id, all.subspan(first));
  }
  std::lock_guard lock(mutex);
  NamedModule& module = modules[to_int(wanted.id)];
  module.has_nothing = !reader.has_anything();
  module.is_kept = reader.has_lines();
  module.source.description = reader.description();
  module.source.problem = reader.problem().empty() ? server_problem : reader.problem();
}

Result<SourceReader::Work::Outcome> SourceReader::Work::read_file(Wanted& wanted, DebugFileFinder& finder,
                                                                  DebuginfodClient* servers) {
  return guard.read(*wanted.file, FileUse::debug_info, [&]() -> Result<Outcome> {
    auto& reader = open[to_int(wanted.id)];
    ReadLimits limits = guard.limits;
    if (wanted.needs_scratch) limits.scratch = &*scratch;
    if (!reader) reader = std::make_unique<ModuleReader>(wanted.file, finder, limits);
    if (servers != nullptr && ask_servers(*servers, *reader, wanted)) return Outcome::awaits_server;
    wanted.needs_scratch = wanted.needs_scratch || (reader->needs_scratch() && scratch.has_value());
    if (wanted.needs_scratch && limits.scratch == nullptr) return Outcome::awaits_turn;
    read_module(*reader, wanted, servers != nullptr ? server_problem(*servers, *reader) : "");
    return Outcome::read;
  });
}

// Unpacking onto a disk takes seconds and comes last. Before that it is the turn of the user whose files have
// taken the least time, so that many or large ones delay no other user's; of these, the hottest file.
SourceReader::Wanted SourceReader::Work::take_next() {
  const auto order = [this](const Wanted& wanted) {
    const auto time = time_of_users.find(user_of(wanted));
    return std::tuple(wanted.needs_scratch, time != time_of_users.end() ? time->second : Nanoseconds(0),
                      -wanted.weight);
  };
  const auto next =
      std::min_element(queue.begin(), queue.end(),
                       [&](const Wanted& left, const Wanted& right) { return order(left) < order(right); });
  Wanted wanted = std::move(*next);
  queue.erase(next);
  return wanted;
}

void SourceReader::Work::refuse(const Wanted& wanted, const Error& error) {
  std::lock_guard lock(mutex);
  NamedModule& module = modules[to_int(wanted.id)];
  module.has_nothing = true;
  module.source.problem = error.message;
}

// Until there is something to read, which may have come from a server meanwhile.
void SourceReader::Work::wait_for_work(std::unique_lock<std::mutex>& lock, const DebuginfodClient* servers) {
  const auto has_work = [this] { return !queue.empty() || is_stopping; };
  while (!awaiting.empty() && !has_work()) {
    const std::size_t finished = servers->finished();
    if (finished != answers_seen) {
      answers_seen = finished;
      queue = std::exchange(awaiting, {});
    } else {
      changed.wait_for(lock, kBetweenLooks, has_work);
    }
  }
  changed.wait(lock, has_work);
}

void SourceReader::Work::run() {
  const Turns turns;
  std::optional<DebuginfodClient> servers;
  if (auto settings = debuginfod_settings()) servers.emplace(*std::move(settings));
  PatientOpener opener;
  DebugFileFinder finder(opener, {.debuginfod_cache = servers ? servers->cache_folder() : ""});
  std::unique_lock lock(mutex);
  while (true) {
    wait_for_work(lock, servers ? &*servers : nullptr);
    if (is_stopping) break;
    Wanted wanted = take_next();
    is_busy = true;
    lock.unlock();
    const Nanoseconds began = monotonic_now();
    const auto outcome = read_file(wanted, finder, servers ? &*servers : nullptr);
    if (!outcome) refuse(wanted, outcome.error());
    // What is awaited is opened again, with more.
    if (!outcome || *outcome != Outcome::read) open.erase(to_int(wanted.id));
    close_beyond_budget(open);
    lock.lock();
    time_of_users[user_of(wanted)] += monotonic_now() - began;
    if (outcome && *outcome != Outcome::read)
      (*outcome == Outcome::awaits_server ? awaiting : queue).push_back(std::move(wanted));
    is_busy = false;
    changed.notify_all();
  }
  open.clear();  // while the finder lives
  has_stopped = true;
  changed.notify_all();
}

SourceReader::SourceReader(const std::string& cache_folder, const FileGuard& guard)
    : work_(std::make_shared<Work>(cache_folder, guard)) {}

SourceReader::~SourceReader() {
  std::unique_lock lock(work_->mutex);
  work_->is_stopping = true;
  work_->changed.notify_all();
  if (thread_.joinable()) {
    const bool has_stopped = work_->changed.wait_for(lock, kMaxHang, [this] { return work_->has_stopped; });
    lock.unlock();
    has_stopped ? thread_.join() : thread_.detach();
  }
}

void SourceReader::read(std::vector<Wanted> wanted, Deadline deadline) {
  std::unique_lock lock(work_->mutex);
  for (Wanted& one : wanted) {
    const NamedModule& module = work_->module_of(one);
    std::erase_if(one.addresses, [&](std::uint64_t address) { return module.names.contains(address); });
    // What an earlier period did not get in time is not worth more than what this one wants.
    std::erase_if(work_->queue, [&](const Wanted& queued) { return queued.id == one.id; });
    std::erase_if(work_->awaiting, [&](const Wanted& awaited) { return awaited.id == one.id; });
    if (!module.has_nothing && !one.addresses.empty()) work_->queue.push_back(one);
  }
  if (!work_->queue.empty() && !thread_.joinable()) thread_ = std::thread([work = work_] { work->run(); });
  work_->changed.notify_all();
  work_->changed.wait_until(lock, deadline, [this] { return work_->is_done(); });
  bool has_saved = false;  // now, as a worker may end at any time
  for (const Wanted& one : wanted) {
    NamedModule& module = work_->module_of(one);
    module.source.unread = work_->count_unread(one);
    has_saved = work_->save(module) || has_saved;
  }
  if (has_saved) work_->folder.trim(kMaxFolderBytes);
  work_->trim_memory(wanted);
}

void SourceReader::forget_except(const CodeFiles& files) {
  const std::lock_guard lock(work_->mutex);
  work_->forget_except(files);
}

Nanoseconds SourceReader::cpu_time() {
  clockid_t clock{};
  const bool has_clock = thread_.joinable() && ::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0;
  return has_clock ? read_clock(clock) : Nanoseconds(0);
}

SourceReader::Known SourceReader::known() { return Known(*work_); }

SourceReader::Known::Known(Work& work) : work_(work), lock_(work.mutex) {}

std::optional<std::vector<NamedCall>> SourceReader::Known::find(FileId id, std::uint64_t address) const {
  auto known = work_.modules.find(to_int(id));
  return known != work_.modules.end() ? known->second.names.find(address) : std::nullopt;
}

SourceReader::Source SourceReader::Known::source(FileId id) const {
  auto known = work_.modules.find(to_int(id));
  return known != work_.modules.end() ? known->second.source : Source{};
}

}  // namespace ddprof
