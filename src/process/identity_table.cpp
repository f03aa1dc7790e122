#include "process/identity_table.hpp"

namespace ddprof {

std::uint32_t IdentityTable::add(Pid pid, const TaskNames& names) {
  if (names.service.empty() || names.identity == nullptr || to_int(pid) <= 0) return 0;
  // A process may have thousands of threads.
  const auto [thread, is_first] = of_threads_.try_emplace({to_int(pid), names.identity.get()}, 0);
  if (!is_first) return thread->second;
  ProcessIdentity identity = *names.identity;
  identity.pid = to_int(pid);
  if (identity.service.empty()) identity.service = identity.program = names.service;
  const auto position = static_cast<std::uint32_t>(period_.size());
  const auto [known, is_new] = positions_.try_emplace(std::move(identity), position);
  if (is_new) period_.push_back(known->first);
  return thread->second = known->second;
}

std::vector<ProcessIdentity> IdentityTable::take() {
  constexpr std::size_t kMostPlaces = 4096;
  if (common_.size() > kMostPlaces) common_.clear();
  const auto place_of = [](const ProcessIdentity& one) { return Place{one.program, one.container_id}; };
  for (const ProcessIdentity& one : period_) {
    if (!one.is_read) continue;
    ProcessIdentity& common = common_.insert_or_assign(place_of(one), one).first->second;
    common.instance_id.clear();
    common.process_tags.clear();
  }
  for (ProcessIdentity& one : period_) {
    const auto known = one.is_read ? common_.end() : common_.find(place_of(one));
    if (known == common_.end()) continue;
    const std::int64_t pid = std::exchange(one, known->second).pid;
    one.pid = pid;
  }
  positions_.clear();
  of_threads_.clear();
  return std::exchange(period_, std::vector<ProcessIdentity>(1));
}

}  // namespace ddprof
