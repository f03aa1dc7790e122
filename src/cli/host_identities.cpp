#include "cli/host_identities.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostKin = 4096;

// What labels alone tell.
ShareIdentity labelled_identity(const SampleOrigin& origin) {
  ShareIdentity identity;
  identity.service = origin.service;
  identity.container_id = origin.container_id;
  if (!identity.container_id.empty()) identity.entity_id = "ci-" + identity.container_id;
  return identity;
}

ShareIdentity said_identity_of(const SampleOrigin& origin, const ProcessIdentity& said) {
  ShareIdentity identity = labelled_identity(origin);
  if (!said.service.empty()) identity.service = said.service;
  identity.environment = said.environment;
  identity.version = said.version;
  identity.entity_id = said.entity_id;
  identity.external_environment = said.external_environment;
  identity.instance_id = said.instance_id;
  identity.process_tags = said.process_tags;
  return identity;
}

// A process of this number that lives elsewhere, or runs another program, came after the one that was
// sampled.
bool is_still_it(const SampleOrigin& origin, const ProcessIdentity& said) {
  return said.container_id == origin.container_id && (said.program == origin.service || said.program.empty());
}

// What others of its service have in common with it.
ShareIdentity kin_of(ShareIdentity identity) {
  identity.instance_id.clear();
  identity.process_tags.clear();
  return identity;
}

}  // namespace

const HostIdentities::Entry& HostIdentities::asked(const SampleOrigin& origin, Clock::time_point now) {
  constexpr auto kSoon = std::chrono::seconds(30);
  constexpr auto kLater = std::chrono::minutes(10);
  Key key{origin.pid, std::string(origin.service), std::string(origin.container_id)};
  const auto [entry, is_new] = asked_.try_emplace(key);
  if (!is_new) return entry->second;
  const auto known = processes_.find(key);
  if (known != processes_.end()) entry->second = std::move(known->second);
  Entry& process = entry->second;
  if (now < process.next_reading) return process;
  const bool was_read = process.said.has_value();
  auto said = read_(Pid{static_cast<std::int32_t>(origin.pid)});
  if (said && is_still_it(origin, *said)) process.said = std::move(said);
  process.next_reading = now + (was_read ? Clock::duration(kLater) : Clock::duration(kSoon));
  return process;
}

std::vector<ShareIdentity> HostIdentities::identify(std::span<const SampleOrigin> origins,
                                                    Clock::time_point now) {
  std::vector<ShareIdentity> identities(origins.size());
  if (kin_.size() > kMostKin) kin_.clear();
  asked_.clear();
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const SampleOrigin& origin = origins[i];
    if (origin.service.empty() || origin.pid <= 0) continue;  // the host's
    const Entry& process = asked(origin, now);
    if (!process.said) continue;
    identities[i] = said_identity_of(origin, *process.said);
    kin_.insert_or_assign({std::string(origin.service), std::string(origin.container_id)},
                          kin_of(identities[i]));
  }
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const SampleOrigin& origin = origins[i];
    if (origin.service.empty() || !identities[i].is_host()) continue;
    const auto kin = kin_.find({std::string(origin.service), std::string(origin.container_id)});
    identities[i] = kin != kin_.end() ? kin->second : labelled_identity(origin);
  }
  processes_ = std::exchange(asked_, {});
  return identities;
}

}  // namespace ddprof
