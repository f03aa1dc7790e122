#include "export/host_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "profile/profile_view.hpp"
#include "profile/split.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kUnused = std::numeric_limits<std::uint32_t>::max();

struct PlannedShare {
  ProcessIdentity identity;
  std::vector<std::int64_t> weights;  // by part
  std::vector<std::int64_t> pids;

  [[nodiscard]] bool is_host() const { return identity.service.empty(); }
};

ProcessIdentity common_identity(ProcessIdentity identity, HostShares::Detail detail) {
  identity.pid = 0;
  identity.program.clear();
  identity.is_configured = identity.is_read = false;
  if (detail == HostShares::Detail::process) return identity;
  for (std::string* field :
       {&identity.entity_id, &identity.external_environment, &identity.instance_id, &identity.process_tags})
    field->clear();
  return identity;
}

// Which share each process of a batch is in.
class SharePlan {
 public:
  SharePlan(const Batch& batch, HostShares::Detail detail)
      : of_process_(std::max<std::size_t>(batch.processes.size(), 1), kUnused) {
    for (std::size_t part = 0; part < batch.parts.size(); ++part) {
      const Profile& profile = batch.parts[part].profile;
      const auto column = default_column(profile);
      for (const ProfileSample& sample : profile.samples) {
        PlannedShare& share = share_of(sample.process, batch, detail);
        if (column) share.weights[part] = saturating_add(share.weights[part], sample.values[*column]);
      }
    }
  }

  // The greatest stay, by their value of the first kind that tells them apart; the others become the host's,
  // which comes last. Returns how many had to.
  std::size_t order(std::size_t most) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t share = 0; share < shares_.size(); ++share)
      if (!shares_[share].is_host()) order.push_back(share);
    std::stable_sort(order.begin(), order.end(), [this](std::uint32_t left, std::uint32_t right) {
      return shares_[left].weights > shares_[right].weights;
    });
    const std::size_t kept = std::min(order.size(), std::max<std::size_t>(most, 1) - 1);
    std::vector<std::uint32_t> place(shares_.size(), static_cast<std::uint32_t>(kept));
    for (std::uint32_t at = 0; at < kept; ++at) place[order[at]] = at;
    std::vector<PlannedShare> arranged(kept < shares_.size() ? kept + 1 : kept);
    for (std::size_t share = 0; share < shares_.size(); ++share)
      if (place[share] < kept) arranged[place[share]] = std::move(shares_[share]);
    for (std::uint32_t& share : of_process_)
      if (share != kUnused) share = place[share];
    shares_ = std::move(arranged);
    return order.size() - kept;
  }

  [[nodiscard]] std::vector<std::uint32_t> of_samples(const Profile& profile) const {
    std::vector<std::uint32_t> shares;
    shares.reserve(profile.samples.size());
    for (const ProfileSample& sample : profile.samples) shares.push_back(of_process_[sample.process]);
    return shares;
  }
  std::vector<PlannedShare>& shares() { return shares_; }

 private:
  PlannedShare& share_of(std::uint32_t process, const Batch& batch, HostShares::Detail detail) {
    std::uint32_t& share = of_process_[process];
    if (share != kUnused) return shares_[share];
    const ProcessIdentity& identity = process == 0 ? ProcessIdentity() : batch.processes[process];
    const auto [known, is_new] = known_.try_emplace(common_identity(identity, detail), shares_.size());
    if (is_new) shares_.push_back({known->first, std::vector<std::int64_t>(batch.parts.size()), {}});
    share = static_cast<std::uint32_t>(known->second);
    shares_[share].pids.push_back(identity.pid);
    return shares_[share];
  }

  std::vector<PlannedShare> shares_;
  std::map<ProcessIdentity, std::size_t> known_;
  std::vector<std::uint32_t> of_process_;
};

std::string text_of_rest(std::size_t left_out, std::size_t most) {
  return fmt::format("{} more services than fit in {} uploads: the smallest are in the host's own", left_out,
                     most);
}

void add_comment(Profile& profile, std::string text) {
  profile.comments.push_back(static_cast<StringIndex>(profile.strings.size()));
  profile.strings.push_back(std::move(text));
}

}  // namespace

void HostShares::cut(const Batch& batch, const std::function<void(Share)>& take) {
  SharePlan plan(batch, detail_);
  const std::size_t left_out = plan.order(most_);
  if (left_out > 0) tell(left_out);
  std::vector<ProfileCutter> cutters;
  for (const Batch::Part& part : batch.parts)
    cutters.emplace_back(part.profile, plan.of_samples(part.profile), plan.shares().size());
  for (std::size_t at = 0; at < plan.shares().size(); ++at) {
    PlannedShare& planned = plan.shares()[at];
    const bool is_host = planned.is_host();
    const std::vector<std::int64_t>& pids = planned.pids;
    const bool is_one = !pids.empty() && std::equal(pids.begin() + 1, pids.end(), pids.begin());
    Share share{std::move(planned.identity), is_one ? pids.front() : 0,
                Batch{.sequence = batch.sequence, .start = batch.start, .end = batch.end}};
    for (std::size_t part = 0; part < batch.parts.size(); ++part)
      if (cutters[part].has_samples(at))
        share.batch.parts.push_back({batch.parts[part].kind, cutters[part].cut(at, is_host)});
    if (is_host && left_out > 0)
      add_comment(share.batch.parts.front().profile, text_of_rest(left_out, most_));
    take(std::move(share));
  }
}

void HostShares::tell(std::size_t left_out) {
  if (auto say = std::exchange(say_notice_, nullptr)) say(text_of_rest(left_out, most_));
}

}  // namespace ddprof
