#include "export/host_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kHostPlace = 0xffffffff;

struct PlannedShare {
  ShareIdentity identity;
  std::vector<std::int64_t> pids;
  std::int64_t weight = 0;
};

// Which share each origin is in.
class SharePlan {
 public:
  SharePlan(const Profile& profile, const SampleOrigins& origins, std::vector<ShareIdentity> identities) {
    std::map<ShareIdentity, std::uint32_t> known;
    for (ShareIdentity& identity : identities) {
      const auto [found, is_new] =
          known.try_emplace(std::move(identity), static_cast<std::uint32_t>(shares_.size()));
      if (is_new) shares_.push_back({found->first, {}, 0});
      of_origin_.push_back(found->second);
    }
    weigh(profile, origins);
    for (std::size_t origin = 0; origin < origins.all.size(); ++origin)
      if (origins.all[origin].pid > 0) shares_[of_origin_[origin]].pids.push_back(origins.all[origin].pid);
  }

  // The greatest stay, the others become the host's, which comes last. Returns how many had to.
  std::size_t order(std::size_t most) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t share = 0; share < shares_.size(); ++share)
      if (!shares_[share].identity.is_host()) order.push_back(share);
    std::stable_sort(order.begin(), order.end(), [this](std::uint32_t left, std::uint32_t right) {
      return shares_[left].weight > shares_[right].weight;
    });
    const std::size_t kept = std::min(order.size(), std::max<std::size_t>(most, 1) - 1);
    std::vector<std::uint32_t> place(shares_.size(), kHostPlace);
    for (std::uint32_t at = 0; at < kept; ++at) place[order[at]] = at;
    rearrange(place, kept);
    return order.size() - kept;
  }

  [[nodiscard]] std::vector<std::uint32_t> of_samples(const SampleOrigins& origins) const {
    std::vector<std::uint32_t> shares;
    shares.reserve(origins.of_sample.size());
    for (std::uint32_t origin : origins.of_sample) shares.push_back(of_origin_[origin]);
    return shares;
  }
  std::vector<PlannedShare>& shares() { return shares_; }

 private:
  void weigh(const Profile& profile, const SampleOrigins& origins) {
    const auto column = default_column(profile);
    if (!column) return;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      std::int64_t& weight = shares_[of_origin_[origins.of_sample[i]]].weight;
      weight = saturating_add(weight, profile.samples[i].values[*column]);
    }
  }

  void rearrange(const std::vector<std::uint32_t>& place, std::size_t kept) {
    const bool has_host = std::find(place.begin(), place.end(), kHostPlace) != place.end();
    std::vector<PlannedShare> arranged(kept + (has_host ? 1 : 0));
    for (std::size_t share = 0; share < shares_.size(); ++share) {
      PlannedShare& from = shares_[share];
      if (place[share] != kHostPlace) {
        arranged[place[share]] = std::move(from);
      } else {
        arranged[kept].pids.insert(arranged[kept].pids.end(), from.pids.begin(), from.pids.end());
      }
    }
    for (std::uint32_t& share : of_origin_)
      share = std::min(place[share], static_cast<std::uint32_t>(kept));  // kHostPlace is greater than any
    shares_ = std::move(arranged);
  }

  std::vector<PlannedShare> shares_;
  std::vector<std::uint32_t> of_origin_;
};

void sort_pids(std::vector<std::int64_t>& pids) {
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
}

std::string text_of_rest(std::size_t left_out, std::size_t most) {
  return fmt::format("{} more services than fit in {} uploads: the smallest are in the host's own", left_out,
                     most);
}

void add_comment(Profile& profile, std::string text) {
  profile.comments.push_back(static_cast<StringIndex>(profile.strings.size()));
  profile.strings.push_back(std::move(text));
}

}  // namespace

void HostShares::cut(const Profile& profile, const std::function<void(Share)>& take) {
  const SampleOrigins origins = origins_of(profile);
  SharePlan plan(profile, origins, identify_(origins.all));
  const std::size_t left_out = plan.order(most_);
  if (left_out > 0) tell(left_out);
  ProfileCutter cutter(profile, plan.of_samples(origins), plan.shares().size());
  for (std::size_t at = 0; at < plan.shares().size(); ++at) {
    PlannedShare& planned = plan.shares()[at];
    sort_pids(planned.pids);
    const bool is_host = planned.identity.is_host();
    Share share{std::move(planned.identity), std::move(planned.pids), cutter.cut(at, is_host)};
    if (is_host && left_out > 0) add_comment(share.profile, text_of_rest(left_out, most_));
    take(std::move(share));
  }
}

void HostShares::tell(std::size_t left_out) {
  if (auto say = std::exchange(say_notice_, nullptr)) say(text_of_rest(left_out, most_));
}

}  // namespace ddprof
