#include "export/destination.hpp"

#include <optional>
#include <utility>

#include "profile/merge.hpp"

namespace ddprof {

Batch Batch::of(Profile profile, std::uint64_t sequence, std::string kind) {
  const Nanoseconds start(profile.time_ns);
  Batch batch{.sequence = sequence, .start = start, .end = start + Nanoseconds(profile.duration_ns)};
  batch.parts.push_back({std::move(kind), std::move(profile)});
  return batch;
}

const Profile& Batch::whole(Profile& space) const {
  if (parts.size() == 1) return parts.front().profile;
  std::vector<const Profile*> kinds;
  for (const Part& part : parts) kinds.push_back(&part.profile);
  return space = kinds.empty() ? Profile() : ProfileMerger::join_kinds(kinds);
}

DeliveryCounters& DeliveryCounters::operator+=(const DeliveryCounters& other) {
  arrived += other.arrived;
  bytes += other.bytes;
  retries += other.retries;
  waiting += other.waiting;
  waiting_bytes += other.waiting_bytes;
  dropped += other.dropped;
  return *this;
}

Result<Delivery> SeveralDestinations::send(const Batch& batch) {
  std::optional<Error> first;
  std::string others;
  Delivery least = Delivery::arrived;
  for (const auto& destination : destinations_) {
    auto sent = destination->send(batch);
    if (sent) {
      others += (others.empty() ? "" : ", ") + destination->describe();
      if (*sent == Delivery::waits) least = Delivery::waits;
    } else if (!first) {
      first = std::move(sent).error();
    }
  }
  if (!first) return least;
  if (!others.empty()) first->message += fmt::format(" ({} has it)", others);
  return std::move(*first);
}

DeliveryCounters SeveralDestinations::counters() const {
  DeliveryCounters sum;
  for (const auto& destination : destinations_) sum += destination->counters();
  return sum;
}

std::string SeveralDestinations::describe() const {
  std::string text;
  for (const auto& destination : destinations_) text += (text.empty() ? "" : ", ") + destination->describe();
  return text;
}

void SeveralDestinations::give_up() {
  for (const auto& destination : destinations_) destination->give_up();
}

}  // namespace ddprof
