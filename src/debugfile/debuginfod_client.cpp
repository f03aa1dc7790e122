#include "debugfile/debuginfod_client.hpp"

#include <algorithm>
#include <utility>

#include "base/call_within.hpp"
#include "base/mapped_region.hpp"
#include "base/patient_opener.hpp"
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

DebuginfodClient::DebuginfodClient(DebuginfodSettings settings)
    : settings_(std::move(settings)), cache_(settings_.cache_folder) {
  for (const std::string& url : settings_.urls) servers_.push_back({url, {}, {}});
}

DebuginfodClient::~DebuginfodClient() {
  {
    std::lock_guard lock(mutex_);
    stop_.request_stop();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DebuginfodClient::post_request(const BuildId& build_id, std::uint64_t weight) {
  std::lock_guard lock(mutex_);
  if (build_id.empty() || stop_.stop_requested()) return;
  if (!requests_.contains(build_id) && requests_.size() >= kMaxRequests) return;
  Request& request = requests_[build_id];
  request.weight = weight;
  if (!is_worth_asking(request.status.state, Clock::now() - request.ended)) return;
  request.status = {DebuginfodState::pending, {}};
  ++pending_;
  if (!thread_.joinable()) thread_ = start_quiet_thread([this] { run(); });
  changed_.notify_all();
}

bool DebuginfodClient::is_pending(const BuildId& build_id) const {
  return status(build_id).state == DebuginfodState::pending;
}

DebuginfodStatus DebuginfodClient::status(const BuildId& build_id) const {
  std::lock_guard lock(mutex_);
  const auto found = requests_.find(build_id);
  return found == requests_.end() ? DebuginfodStatus{} : found->second.status;
}

bool DebuginfodClient::wait(Clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return pending_ == 0; });
}

std::size_t DebuginfodClient::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

void DebuginfodClient::run() {
  cache_.clean();
  while (const auto build_id = next_request()) finish(*build_id, fetch(*build_id));
}

std::optional<BuildId> DebuginfodClient::next_request() {
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

void DebuginfodClient::finish(const BuildId& build_id, DebuginfodStatus status) {
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

DebuginfodStatus DebuginfodClient::fetch(const BuildId& build_id) {
  switch (cache_.find(build_id)) {
    case DebuginfodCache::Entry::known_absent:
      return {DebuginfodState::absent, {}};
    case DebuginfodCache::Entry::present: {
      const UniqueFd fd = open_regular_file("", cache_.path_of(build_id)).value_or({});
      if (fd.is_open() && check_arrival(fd.get(), build_id)) return {DebuginfodState::found, {}};
      break;  // somebody has spoilt it: a new one will replace it
    }
    case DebuginfodCache::Entry::none:
      break;
  }
  return ask_servers(build_id);
}

DebuginfodStatus DebuginfodClient::ask_servers(const BuildId& build_id) {
  auto arrival = cache_.begin(build_id);
  if (!arrival) return failed_with(arrival.error().message);
  std::string reason;
  for (Server& server : servers_) {
    DebuginfodStatus status = ask(server, build_id, *arrival);
    if (status.state == DebuginfodState::found) return status;
    if (status.state == DebuginfodState::failed && reason.empty()) reason = std::move(status.reason);
  }
  // Whoever did not answer may have it.
  if (!reason.empty()) return failed_with(std::move(reason));
  static_cast<void>(cache_.note_absent(build_id));  // a hint for others; we know it now
  return {DebuginfodState::absent, {}};
}

DebuginfodStatus DebuginfodClient::ask(Server& server, const BuildId& build_id,
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

}  // namespace ddprof
