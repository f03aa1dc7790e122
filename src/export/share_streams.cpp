#include "export/share_streams.hpp"

#include <algorithm>

namespace ddprof {

void ShareStreams::begin_batch(std::uint64_t sequence) {
  if (has_batch_ && sequence > batch_ + 1) {
    for (auto& [identity, stream] : streams_)
      if (stream.last_batch == batch_) stream.next += sequence - batch_ - 1;
  }
  if (!has_batch_) first_batch_ = sequence;
  batch_ = sequence;
  has_batch_ = true;
}

ShareStreams::Place ShareStreams::next(const ProcessIdentity& identity) {
  if (streams_.size() >= kMostStreams && !streams_.contains(identity)) forget_oldest();
  auto [known, is_new] = streams_.try_emplace(identity);
  Stream& stream = known->second;
  if (is_new) stream = begun(identity);
  stream.last_batch = batch_;
  return {stream.runtime_id, stream.next++};
}

// An id that is not ours to choose may have been used by the worker before this one, whose numbers end below
// those of our batches.
ShareStreams::Stream ShareStreams::begun(const ProcessIdentity& identity) const {
  const std::string& known_id = identity.service.empty() ? host_id_ : identity.instance_id;
  if (known_id.empty()) return {new_id_(), 0, batch_};
  return {known_id, first_batch_, batch_};
}

// If it comes again, it is a new stream.
void ShareStreams::forget_oldest() {
  const auto oldest = std::min_element(
      streams_.begin(), streams_.end(),
      [](const auto& one, const auto& other) { return one.second.last_batch < other.second.last_batch; });
  if (oldest != streams_.end()) streams_.erase(oldest);
}

}  // namespace ddprof
