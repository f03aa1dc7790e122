#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collect/collector.hpp"

namespace ddprof {

// An event with all that it points to. It stays where it is.
class OwnedEvent {
 public:
  OwnedEvent(const CollectorEvent& event, Nanoseconds time) : time_(time), event_(event) {
    if (auto* sample = std::get_if<SampleEvent>(&event_)) {
      own(sample->stack, stack_);
      own(sample->thread_context, context_);
      own(sample->kernel_chain, kernel_chain_);
      own(sample->user_chain, user_chain_);
    } else if (auto* map = std::get_if<MapEvent>(&event_)) {
      map->path = text_ = map->path;
    } else if (auto* comm = std::get_if<CommEvent>(&event_)) {
      comm->comm = text_ = comm->comm;
    }
  }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;

  [[nodiscard]] Nanoseconds time() const { return time_; }
  [[nodiscard]] const CollectorEvent& event() const { return event_; }

 private:
  template <typename Element>
  static void own(std::span<const Element>& view, std::vector<Element>& store) {
    store.assign(view.begin(), view.end());
    view = store;
  }

  Nanoseconds time_;
  CollectorEvent event_;
  std::vector<std::byte> stack_, context_;
  std::vector<std::uint64_t> kernel_chain_, user_chain_;
  std::string text_;
};

}  // namespace ddprof
