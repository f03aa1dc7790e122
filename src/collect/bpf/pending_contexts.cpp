#include "collect/bpf/pending_contexts.hpp"

namespace ddprof {

void PendingContexts::add(const InterruptKey& key, Nanoseconds time, std::span<const std::byte> bytes) {
  if (count_ >= kMost) return;
  of_thread_[to_int(key.tid)].push_back({key, time, {bytes.begin(), bytes.end()}});
  ++count_;
}

std::span<const std::byte> PendingContexts::take(const InterruptKey& key, Nanoseconds time) {
  const auto found = of_thread_.find(to_int(key.tid));
  if (found == of_thread_.end()) return {};
  Pending* nearest = nullptr;
  for (Pending& pending : found->second) {
    const bool is_same = pending.key == key && !pending.is_taken;
    const Nanoseconds distance = std::chrono::abs(pending.time - time);
    if (!is_same || distance > distance_) continue;
    if (nearest == nullptr || distance < std::chrono::abs(nearest->time - time)) nearest = &pending;
  }
  if (nearest == nullptr) return {};
  nearest->is_taken = true;
  return nearest->bytes;
}

void PendingContexts::forget_before(Nanoseconds time) {
  count_ = 0;
  for (auto entry = of_thread_.begin(); entry != of_thread_.end();) {
    std::erase_if(entry->second,
                  [&](const Pending& pending) { return pending.is_taken || pending.time < time; });
    count_ += entry->second.size();
    if (entry->second.empty()) {
      of_thread_.erase(entry++);
    } else {
      ++entry;
    }
  }
}

}  // namespace ddprof
