#include "collect/perf/ring_set.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ddprof {

namespace {

// A ring may fill to one part in so many before the reader is woken; the rest is for when it has to wait.
constexpr std::size_t kFullEnough = 4;

}  // namespace

Result<RingSet> RingSet::open_with(const std::vector<int>& cpus, const AttrFeatures& features,
                                   std::size_t pages, std::size_t watermark_bytes) {
  auto watermark = static_cast<std::uint32_t>(watermark_bytes);
  RingSet set;
  for (int cpu : cpus) {
    auto holder =
        open_perf_event(ring_attr(features, watermark), kSelf, cpu, fmt::format("ring of CPU {}", cpu));
    // A CPU that went offline since it was listed has nothing to tell.
    if (!holder.ok() && holder.error().code == ErrorCode::unsupported) continue;
    if (!holder.ok()) return std::move(holder).error();
    set.rings_.push_back(TRY(PerfRing::map(holder->get(), pages)));
    set.holders_.push_back(std::move(holder).value());
    set.cpus_.push_back(cpu);
  }
  return set;
}

Result<RingSet> RingSet::open(const std::vector<int>& cpus, const AttrFeatures& features,
                              const RingBudget& budget) {
  // The budget is an estimate: other profilers of the same user draw on it too.
  for (std::size_t pages = budget.pages;; pages /= 2) {
    auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto set = open_with(cpus, features, pages, pages * page_bytes / kFullEnough);
    bool is_too_large = !set.ok() && (set.error().code == ErrorCode::permission_denied ||
                                      set.error().code == ErrorCode::exhausted);
    if (is_too_large && pages > 1) continue;
    if (set.ok() && pages < budget.wanted_pages) {
      std::size_t ratio = budget.wanted_pages / pages;
      set->notice_ =
          fmt::format("rings of {} KiB per CPU instead of {} KiB, samples may be lost under load: {}",
                      set->bytes_per_ring() / 1024, set->bytes_per_ring() * ratio / 1024,
                      lock_more_command(set->bytes_per_ring() * ratio));
    }
    return set;
  }
}

Result<void> RingSet::add_immediate(const AttrFeatures& features, std::size_t pages) {
  constexpr std::size_t kEveryRecord = 1;
  RingSet more = TRY(open_with(cpus_, features, pages, kEveryRecord));
  if (more.cpus_ != cpus_) return make_error(ErrorCode::failed, "open more rings: a CPU has gone offline");
  first_active_ = rings_.size();
  for (PerfRing& ring : more.rings_) rings_.push_back(std::move(ring));
  for (UniqueFd& holder : more.holders_) holders_.push_back(std::move(holder));
  return {};
}

Result<void> RingSet::take_over() {
  for (std::size_t i = 0; i < rings_.size(); ++i) TRY(rings_[i].take_over(holders_[i].get()));
  return {};
}

Result<void> RingSet::redirect(int event_fd, std::size_t position) const {
  if (position >= cpus_.size())
    return make_error(ErrorCode::invalid_argument, "redirect perf event: there is no ring {}", position);
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_OUTPUT, holders_[first_active_ + position].get()) != 0)
    return errno_error(errno, fmt::format("redirect perf event to the ring of CPU {}", cpus_[position]));
  return {};
}

Result<bool> RingSet::wait(std::chrono::milliseconds timeout, int task_fd, int wake_fd) {
  // Asking whether an event has hung up also takes back the wake-up of its ring, so that poll() alone is not
  // enough.
  auto is_due = [](const PerfRing& ring) { return ring.pending_bytes() > ring.capacity() / kFullEnough; };
  if (std::any_of(rings_.begin(), rings_.end(), is_due)) return true;

  std::vector<pollfd> waiters;
  waiters.reserve(holders_.size() + 2);
  for (const UniqueFd& holder : holders_)
    waiters.push_back({.fd = holder.get(), .events = POLLIN, .revents = 0});
  if (task_fd >= 0) waiters.push_back({.fd = task_fd, .events = 0, .revents = 0});
  if (wake_fd >= 0) waiters.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  int ready = ::poll(waiters.data(), waiters.size(), static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return errno_error(errno, "wait for perf events");
  return ready > 0;
}

}  // namespace ddprof
