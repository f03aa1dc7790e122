#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/build_id.hpp"
#include "debugfile/debuginfod_settings.hpp"

namespace ddprof {

enum class DebuginfodState {
  unknown,  // not asked for
  pending,
  found,   // in the cache folder, where the finder looks
  absent,  // no server has it
  failed,  // not known: servers that do not answer, or lie
};

struct DebuginfodStatus {
  DebuginfodState state = DebuginfodState::unknown;
  std::string reason;  // of a failure
};

// Asks debuginfod servers for debug files, on a thread of its own, one after the other, the ones that matter
// most first. What arrives is a file in the cache folder and a status here; no caller has to wait. For one
// thread, next to its own.
class DebuginfodClient {
 public:
  using Clock = std::chrono::steady_clock;
  // Build ids that are remembered; a host with more distinct files than this asks for no more.
  static constexpr std::size_t kMaxRequests = 8192;
  // A server that does not answer is not asked again for so long.
  static constexpr std::chrono::seconds kRest{300};

  explicit DebuginfodClient(DebuginfodSettings settings);
  // Gives up what is under way. The thread is left behind when the file system of the cache holds it for
  // longer than this.
  static constexpr std::chrono::seconds kFarewell{1};
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
  [[nodiscard]] const std::string& cache_folder() const { return cache_folder_; }

 private:
  class Worker;

  std::string cache_folder_;
  // Shared with the thread, which may have to be left behind.
  std::shared_ptr<Worker> worker_;
  std::thread thread_;
};

}  // namespace ddprof
