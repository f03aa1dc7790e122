#include "export/several_destinations.hpp"

#include <optional>

namespace ddprof {

Result<void> SeveralDestinations::send(const Profile& profile, std::uint64_t sequence) {
  std::optional<Error> first;
  std::string others;
  for (const auto& destination : destinations_) {
    auto sent = destination->send(profile, sequence);
    if (sent) {
      others += (others.empty() ? "" : ", ") + destination->describe();
    } else if (!first) {
      first = std::move(sent).error();
    }
  }
  if (!first) return {};
  if (!others.empty()) first->message += fmt::format(" ({} has it)", others);
  return std::move(*first);
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
