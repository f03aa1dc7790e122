#include "export/several_destinations.hpp"

#include <optional>

namespace ddprof {

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
