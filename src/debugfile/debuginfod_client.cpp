#include "debugfile/debuginfod_client.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/call_within.hpp"
#include "base/foreign_file.hpp"
#include "base/mapped_region.hpp"
#include "debugfile/debuginfod_cache.hpp"
#include "elf/debug_links.hpp"
#include "elf/elf_file.hpp"
#include "net/http_client.hpp"

namespace ddprof {

namespace {

HttpOptions http_options(const DebuginfodSettings& settings, std::stop_token stop) {
  HttpOptions options;
  options.connect_timeout = std::min<std::chrono::milliseconds>(settings.timeout, options.connect_timeout);
  options.first_byte_timeout = settings.timeout;
  options.progress_timeout = settings.timeout;
  options.progress_bytes = 100U << 10U;
  options.total_timeout = settings.max_time;
  options.max_bytes = settings.max_bytes;
  options.stop = std::move(stop);
  return options;
}

// What a server sends must be what was asked for.
Result<void> check_arrival(int fd, const BuildId& build_id) {
  const MappedRegion region = TRY(MappedRegion::map_file(fd));
  const auto file = ElfFile::parse(region.bytes());
  if (!file) return make_error(ErrorCode::corrupt, "what it sent is no ELF file");
  if (supplementary_id(*file) != build_id)
    return make_error(ErrorCode::corrupt, "what it sent belongs to another build");
  return {};
}

// Answers hold for a while: elfutils' client forgets an absence after ten minutes.
bool is_worth_asking(DebuginfodState state, DebuginfodClient::Clock::duration age) {
  if (state == DebuginfodState::absent) return age > std::chrono::minutes(10);
  if (state == DebuginfodState::failed) return age > DebuginfodClient::kRest;
  return state == DebuginfodState::unknown;
}

DebuginfodStatus failed_with(std::string reason) { return {DebuginfodState::failed, std::move(reason)}; }

}  // namespace

// What the client and its thread share.
class DebuginfodClient::Worker {
 public:
  explicit Worker(DebuginfodSettings settings)
      : settings_(std::move(settings)), cache_(settings_.cache_folder) {
    for (const std::string& url : settings_.urls) servers_.push_back({url, {}, {}});
  }

  // For the client.
  bool add(const BuildId& build_id, std::uint64_t weight);
  [[nodiscard]] DebuginfodStatus status(const BuildId& build_id) const;
  bool wait(Clock::time_point deadline) const;
  [[nodiscard]] std::size_t finished() const;
  // True once the thread is at its end.
  bool stop(std::chrono::seconds patience);

  // The life of the thread.
  void run();

 private:
  struct Request {
    std::uint64_t weight = 0;
    DebuginfodStatus status;
    Clock::time_point ended;
  };
  struct Server {
    std::string url;
    Clock::time_point rests_until;
    std::string reason;  // why it rests
  };

  std::optional<BuildId> next_request();
  void finish(const BuildId& build_id, DebuginfodStatus status);
  DebuginfodStatus fetch(const BuildId& build_id);
  DebuginfodStatus ask_servers(const BuildId& build_id);
  // Found, absent or failed at this one.
  DebuginfodStatus ask(Server& server, const BuildId& build_id, DebuginfodCache::Arrival& arrival);

  const DebuginfodSettings settings_;
  const DebuginfodCache cache_;
  std::vector<Server> servers_;  // of the thread

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<BuildId, Request> requests_;
  std::size_t pending_ = 0;
  std::size_t finished_ = 0;
  bool is_at_end_ = false;
  std::stop_source stop_;
};

bool DebuginfodClient::Worker::add(const BuildId& build_id, std::uint64_t weight) {
  std::lock_guard lock(mutex_);
  if (build_id.empty()) return false;
  if (!requests_.contains(build_id) && requests_.size() >= kMaxRequests) return false;
  Request& request = requests_[build_id];
  request.weight = weight;
  if (!is_worth_asking(request.status.state, Clock::now() - request.ended)) return false;
  request.status = {DebuginfodState::pending, {}};
  ++pending_;
  changed_.notify_all();
  return true;
}

DebuginfodStatus DebuginfodClient::Worker::status(const BuildId& build_id) const {
  std::lock_guard lock(mutex_);
  const auto found = requests_.find(build_id);
  return found == requests_.end() ? DebuginfodStatus{} : found->second.status;
}

bool DebuginfodClient::Worker::wait(Clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return pending_ == 0; });
}

std::size_t DebuginfodClient::Worker::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

bool DebuginfodClient::Worker::stop(std::chrono::seconds patience) {
  stop_.request_stop();
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  return changed_.wait_for(lock, patience, [this] { return is_at_end_; });
}

void DebuginfodClient::Worker::run() {
  cache_.clean();
  while (const auto build_id = next_request()) finish(*build_id, fetch(*build_id));
  std::lock_guard lock(mutex_);
  is_at_end_ = true;
  changed_.notify_all();
}

std::optional<BuildId> DebuginfodClient::Worker::next_request() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return pending_ != 0 || stop_.stop_requested(); });
  if (stop_.stop_requested()) return std::nullopt;
  const Request* best = nullptr;
  BuildId build_id;
  for (const auto& [id, request] : requests_) {
    if (request.status.state != DebuginfodState::pending) continue;
    if (best != nullptr && best->weight >= request.weight) continue;
    best = &request;
    build_id = id;
  }
  return build_id;
}

void DebuginfodClient::Worker::finish(const BuildId& build_id, DebuginfodStatus status) {
  {
    std::lock_guard lock(mutex_);
    Request& request = requests_[build_id];
    request.status = std::move(status);
    request.ended = Clock::now();
    --pending_;
    ++finished_;
  }
  changed_.notify_all();
}

DebuginfodStatus DebuginfodClient::Worker::fetch(const BuildId& build_id) {
  switch (cache_.find(build_id)) {
    case DebuginfodCache::Entry::known_absent:
      return {DebuginfodState::absent, {}};
    case DebuginfodCache::Entry::present: {
      const auto file = open_foreign_file({.path = cache_.path_of(build_id)});
      if (file && check_arrival(file->fd.get(), build_id)) return {DebuginfodState::found, {}};
      break;  // it was spoilt: a new one will replace it
    }
    case DebuginfodCache::Entry::none:
      break;
  }
  return ask_servers(build_id);
}

DebuginfodStatus DebuginfodClient::Worker::ask_servers(const BuildId& build_id) {
  auto arrival = cache_.begin(build_id);
  if (!arrival) return failed_with(arrival.error().message);
  std::string reason;
  for (Server& server : servers_) {
    DebuginfodStatus status = ask(server, build_id, *arrival);
    if (status.state == DebuginfodState::found) return status;
    if (status.state == DebuginfodState::failed && reason.empty()) reason = std::move(status.reason);
  }
  // A server that did not answer may have it.
  if (!reason.empty()) return failed_with(std::move(reason));
  static_cast<void>(cache_.note_absent(build_id));  // a hint for others; we know it now
  return {DebuginfodState::absent, {}};
}

DebuginfodStatus DebuginfodClient::Worker::ask(Server& server, const BuildId& build_id,
                                               DebuginfodCache::Arrival& arrival) {
  if (Clock::now() < server.rests_until) return failed_with(server.reason);
  if (auto restarted = arrival.restart(); !restarted) return failed_with(restarted.error().message);
  const std::string url = server.url + "/buildid/" + build_id.hex() + "/debuginfo";
  const auto answer = http_get(url, http_options(settings_, stop_.get_token()),
                               [&arrival](std::span<const std::byte> bytes) { return arrival.write(bytes); });
  if (answer && answer->status == 404) return {DebuginfodState::absent, {}};
  if (!answer || answer->status != 200) {
    const std::string reason =
        answer ? fmt::format("get {}: status {}", url, answer->status) : answer.error().message;
    // One file that is too large, or refused, says nothing about the next.
    const bool is_down =
        answer ? answer->status >= 500 || answer->status == 429 : answer.error().code != ErrorCode::exhausted;
    if (is_down) {
      server.reason = reason;
      server.rests_until = Clock::now() + kRest;
    }
    return failed_with(reason);
  }
  if (auto checked = check_arrival(arrival.fd(), build_id); !checked)
    return failed_with(fmt::format("get {}: {}", url, checked.error().message));
  if (auto kept = arrival.keep(); !kept) return failed_with(kept.error().message);
  return {DebuginfodState::found, {}};
}

DebuginfodClient::DebuginfodClient(DebuginfodSettings settings)
    : cache_folder_(settings.cache_folder), worker_(std::make_shared<Worker>(std::move(settings))) {}

DebuginfodClient::~DebuginfodClient() {
  if (!thread_.joinable()) return;
  if (worker_->stop(kFarewell)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void DebuginfodClient::post_request(const BuildId& build_id, std::uint64_t weight) {
  if (worker_->add(build_id, weight) && !thread_.joinable())
    thread_ = start_quiet_thread([worker = worker_] { worker->run(); });
}

bool DebuginfodClient::is_pending(const BuildId& build_id) const {
  return status(build_id).state == DebuginfodState::pending;
}

DebuginfodStatus DebuginfodClient::status(const BuildId& build_id) const { return worker_->status(build_id); }
bool DebuginfodClient::wait(Clock::time_point deadline) const { return worker_->wait(deadline); }
std::size_t DebuginfodClient::finished() const { return worker_->finished(); }

}  // namespace ddprof
