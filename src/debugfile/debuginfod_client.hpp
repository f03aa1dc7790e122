#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/build_id.hpp"
#include "base/result.hpp"
#include "debugfile/debuginfod_cache.hpp"
#include "debugfile/debuginfod_settings.hpp"

namespace ddprof {

enum class DebuginfodState {
  unknown,  // not asked for
  pending,
  found,   // in the cache folder, where the finder looks
  absent,  // no server has it
  failed,  // nobody knows: servers that do not answer, or lie
};

struct DebuginfodStatus {
  DebuginfodState state = DebuginfodState::unknown;
  std::string reason;  // of a failure
};

// Asks debuginfod servers for debug files, on a thread of its own, one after the other, the ones that matter
// most first. What arrives is a file in the cache folder and a status here; nobody needs to wait. Everything
// may be called from any thread.
class DebuginfodClient {
 public:
  using Clock = std::chrono::steady_clock;
  // Build ids that are remembered; a host with more distinct files than this asks for no more.
  static constexpr std::size_t kMaxRequests = 8192;
  // A server that does not answer is not asked again for so long.
  static constexpr std::chrono::seconds kRest{300};

  explicit DebuginfodClient(DebuginfodSettings settings);
  // Gives up what is under way.
  ~DebuginfodClient();
  DebuginfodClient(const DebuginfodClient&) = delete;
  DebuginfodClient& operator=(const DebuginfodClient&) = delete;

  // The greatest weight is asked for first. Asking again changes the weight while it is pending, and asks the
  // servers again once what they said is too old to hold.
  void post_request(const BuildId& build_id, std::uint64_t weight);
  [[nodiscard]] bool is_pending(const BuildId& build_id) const;
  [[nodiscard]] DebuginfodStatus status(const BuildId& build_id) const;
  // Until nothing is pending. False: there still is.
  bool wait(Clock::time_point deadline) const;
  // Grows with each request that comes to an end: whether it is worth to look again.
  [[nodiscard]] std::size_t finished() const;
  [[nodiscard]] const std::string& cache_folder() const { return settings_.cache_folder; }

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

  void run();
  std::optional<BuildId> next_request();
  void finish(const BuildId& build_id, DebuginfodStatus status);
  DebuginfodStatus fetch(const BuildId& build_id);
  DebuginfodStatus ask_servers(const BuildId& build_id);
  // Found, absent or failed at this one.
  DebuginfodStatus ask(Server& server, const BuildId& build_id, DebuginfodCache::Arrival& arrival);

  DebuginfodSettings settings_;
  DebuginfodCache cache_;
  std::vector<Server> servers_;  // of the thread

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<BuildId, Request> requests_;
  std::size_t pending_ = 0;
  std::size_t finished_ = 0;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace ddprof
