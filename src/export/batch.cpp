#include "export/batch.hpp"

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

}  // namespace ddprof
