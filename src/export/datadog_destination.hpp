#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "export/agent_address.hpp"
#include "export/datadog_answer.hpp"
#include "export/datadog_body.hpp"
#include "export/destination.hpp"

namespace ddprof {

struct DatadogOptions {
  // The agent itself gives up after five seconds.
  static constexpr std::chrono::milliseconds kUsualPatience = std::chrono::seconds(10);

  AgentAddress agent;
  DatadogIdentity identity;
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  std::chrono::milliseconds patience = kUsualPatience;       // with one profile, from the first byte on
};

// Posts each profile to a Datadog agent. What may pass is tried once more, after a random pause or the one
// that the agent asks for, if there is time. One who takes a profile and says nothing has all of the time: he
// may have kept it, and must not count it twice.
class DatadogDestination final : public Destination {
 public:
  explicit DatadogDestination(DatadogOptions options) : options_(std::move(options)) {}

  Result<void> send(const Profile& profile, std::uint64_t sequence) override;
  [[nodiscard]] std::string describe() const override { return options_.agent.text(); }
  void give_up() override { stop_.request_stop(); }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Result<MultipartForm> body_of(const Profile& profile, std::uint64_t sequence) const;
  [[nodiscard]] Result<void> deliver(const MultipartForm& form);
  [[nodiscard]] DatadogVerdict attempt(const MultipartForm& form, Clock::time_point end) const;
  // None: there would be no time left.
  [[nodiscard]] std::optional<std::chrono::milliseconds> pause_after(const DatadogVerdict& verdict,
                                                                     Clock::time_point end) const;
  // False when told to give up.
  bool wait(std::chrono::milliseconds pause);

  DatadogOptions options_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any never_;
};

}  // namespace ddprof
