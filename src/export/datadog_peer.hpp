#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "export/addresses.hpp"
#include "export/datadog_body.hpp"
#include "export/host_shares.hpp"
#include "export/peer.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

// What a backend knows the uploads of one share by, from period to period: a runtime-id of its own, and
// numbers without gaps.
class ShareStreams {
 public:
  static constexpr std::size_t kMostStreams = 4096;

  // `host_id`: the runtime-id of the host's own share. `new_id` makes others.
  ShareStreams(std::string host_id, std::function<std::string()> new_id)
      : host_id_(std::move(host_id)), new_id_(std::move(new_id)) {}

  // Batches that never came here leave a gap in the streams that the last one had a share of.
  void begin_batch(std::uint64_t sequence);

  struct Place {
    std::string runtime_id;
    std::uint64_t sequence = 0;
  };
  // A share that is not in a batch does not advance.
  Place next(const ProcessIdentity& identity);

 private:
  struct Stream {
    std::string runtime_id;
    std::uint64_t next = 0;
    std::uint64_t last_batch = 0;
  };

  [[nodiscard]] Stream begun(const ProcessIdentity& identity) const;
  void forget_oldest();

  std::string host_id_;
  std::function<std::string()> new_id_;
  std::uint64_t batch_ = 0, first_batch_ = 0;
  bool has_batch_ = false;
  std::map<ProcessIdentity, Stream> streams_;
};

struct DatadogOptions {
  AgentAddress agent;   // or the intake, when there is a key
  std::string api_key;  // of the intake; empty: an agent, which has one of its own
  IntakeFormat format = IntakeFormat::version_4;
  DatadogIdentity identity;
  ProcessIdentity target;  // where it lives
  // Whether the user has chosen them: what the target publishes of itself stands for the others.
  bool has_service = false, has_runtime_id = false;
  std::shared_ptr<HostShares> shares = {};           // null: one upload for all that there is in a batch
  std::function<std::string()> new_runtime_id = {};  // for each share but the host's own
};

// A Datadog agent, or the intake.
Peer datadog_peer(const DatadogOptions& options);

}  // namespace ddprof
