#include "collect/perf/ring_set.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

namespace {

constexpr int kMaxCpu = 65535;

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kMaxCpu) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_character(std::string_view& text, char character) {
  if (!text.starts_with(character)) return false;
  text.remove_prefix(1);
  return true;
}

// Those that we may run on; so may the target, which inherits it.
Result<std::vector<int>> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return errno_error(errno, "sched_getaffinity");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  std::string_view left = text;
  do {
    auto first = take_number(left);
    auto last = first && take_character(left, '-') ? take_number(left) : first;
    if (!first || !last || *last < *first)
      return make_error(ErrorCode::corrupt, "CPU list '{}': not understood", text);
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take_character(left, ','));
  if (!left.empty() && left != "\n")
    return make_error(ErrorCode::corrupt, "CPU list '{}': not understood", text);
  return cpus;
}

Result<std::vector<int>> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string line;
  // A chroot may have no /sys.
  return std::getline(file, line) ? parse_cpu_list(line) : own_cpus();
}

namespace {

constexpr std::uint64_t kSmallestRing = 512 * 1024;
constexpr std::uint64_t kLargestRing = 8 * 1024 * 1024;
// Of all CPUs together, so that a machine with many does not make an idle profiler large.
constexpr std::uint64_t kAllRings = 32 * 1024 * 1024;
constexpr std::uint64_t kAllRingsAtHighRates = 256 * 1024 * 1024;
constexpr std::uint64_t kHighRate = 250;
// The reader looks four times a second, and a busy machine may keep it waiting as long again.
constexpr std::uint64_t kFractionOfSecond = 2;
// The kernel writes to every part of a ring in turn: a large one pushes the target's data out of the caches.
// At the highest rates losing samples would be worse.
constexpr std::uint64_t kFractionAtHighRates = 12;
constexpr std::uint64_t kHighestRate = 2'500;

std::uint64_t saturating_add(std::uint64_t left, std::uint64_t right) {
  return left > std::numeric_limits<std::uint64_t>::max() - right ? std::numeric_limits<std::uint64_t>::max()
                                                                  : left + right;
}

}  // namespace

RingBudget ring_budget(const RingBudgetInput& input) {
  bool is_costly = input.samples_per_second > kHighRate && input.samples_per_second <= kHighestRate;
  std::uint64_t needed =
      input.samples_per_second * input.record_bytes / (is_costly ? kFractionAtHighRates : kFractionOfSecond);
  std::uint64_t all = input.samples_per_second > kHighRate ? kAllRingsAtHighRates : kAllRings;
  std::uint64_t share =
      std::bit_floor(std::clamp(all / std::max<std::size_t>(input.cpus, 1), kSmallestRing, kLargestRing));
  std::uint64_t wanted = std::min(share, std::bit_ceil(std::clamp(needed, kSmallestRing, kLargestRing)));
  RingBudget budget;
  budget.wanted_pages = std::max<std::size_t>(wanted / input.page_bytes, 1);
  budget.pages = budget.wanted_pages;
  if (input.may_lock_freely) return budget;

  // The kernel charges each ring with its control page against mlock_kb of every CPU, and what exceeds the
  // sum against RLIMIT_MEMLOCK.
  std::uint64_t cpus = std::max<std::size_t>(input.cpus, 1);
  std::uint64_t allowed = saturating_add(input.perf_mlock_kib * 1024 * cpus, input.memlock_limit_bytes);
  std::uint64_t pages_per_cpu = allowed / cpus / input.page_bytes;
  std::uint64_t data_pages = pages_per_cpu > 1 ? std::bit_floor(pages_per_cpu - 1) : 1;
  budget.pages = std::min<std::size_t>(budget.wanted_pages, data_pages);
  return budget;
}

std::uint32_t automatic_stack_bytes(RingBudgetInput input) {
  // The kernel copies what is there, which may be more than the stack: it does not know where that ends. And
  // a record takes up the whole size in the ring.
  struct Step {
    std::uint64_t highest_rate;
    std::uint32_t stack_bytes;
  };
  constexpr std::uint64_t kAnyRate = ~std::uint64_t{0};
  constexpr Step kSteps[] = {{kHighRate, 65528}, {kHighRate, 32000}, {1'000, 16384}, {kAnyRate, 8192}};
  constexpr std::uint64_t kFewestRecords = 12;
  for (const Step& step : kSteps) {
    input.record_bytes = step.stack_bytes;
    bool has_room = ring_budget(input).pages * input.page_bytes >= kFewestRecords * step.stack_bytes;
    if (input.samples_per_second <= step.highest_rate && has_room) return step.stack_bytes;
  }
  return kSteps[3].stack_bytes;
}

RingBudgetInput ring_budget_of_this_machine(std::size_t cpus) {
  RingBudgetInput input;
  input.cpus = cpus;
  input.page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream("/proc/sys/kernel/perf_event_mlock_kb") >> input.perf_mlock_kib;
  const OwnPrivileges privileges = own_privileges();
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) input.memlock_limit_bytes = limit.rlim_cur;
  input.may_lock_freely = privileges.paranoid.value_or(2) < 0 || privileges.has(CAP_IPC_LOCK);
  return input;
}

std::string lock_more_command(std::size_t ring_bytes) {
  constexpr std::size_t kBesides = 512;  // control pages, and the small rings for totals
  return fmt::format("sudo sysctl kernel.perf_event_mlock_kb={}, or ulimit -l unlimited",
                     ring_bytes / 1024 + kBesides);
}

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
    auto set =
        open_with(cpus, features, pages, budget.watermark_bytes.value_or(pages * page_bytes / kFullEnough));
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

Result<void> RingSet::add_immediate(const AttrFeatures& features) {
  constexpr std::size_t kEveryRecord = 1;
  // The reader is at hand, but for when it waits for unwind information: FileThreads::Limits::most_waiting.
  const std::size_t smallest = std::min<std::size_t>(kSmallestRing, bytes_per_ring());
  const std::size_t pages =
      std::max(bytes_per_ring() / 2, smallest) / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  RingSet more =
      TRY(open(cpus_, features, {.wanted_pages = pages, .pages = pages, .watermark_bytes = kEveryRecord}));
  if (more.bytes_per_ring() < smallest)
    return make_error(ErrorCode::exhausted, "open more rings: no memory may be locked for them");
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

Result<bool> RingSet::wait(std::chrono::milliseconds timeout, int task_fd, int wake_fd,
                           const RingSet* others) {
  // Asking whether an event has hung up also takes back the wake-up of its ring, so that poll() alone is not
  // enough.
  auto is_due = [](const PerfRing& ring) { return ring.pending_bytes() > ring.capacity() / kFullEnough; };
  if (std::any_of(rings_.begin(), rings_.end(), is_due)) return true;

  std::vector<pollfd> waiters;
  for (const RingSet* set : {static_cast<const RingSet*>(this), others})
    for (std::size_t i = 0; set != nullptr && i < set->holders_.size(); ++i)
      waiters.push_back({.fd = set->holders_[i].get(), .events = POLLIN, .revents = 0});
  if (task_fd >= 0) waiters.push_back({.fd = task_fd, .events = 0, .revents = 0});
  if (wake_fd >= 0) waiters.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  int ready = ::poll(waiters.data(), waiters.size(), static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return errno_error(errno, "wait for perf events");
  return ready > 0;
}

}  // namespace ddprof
