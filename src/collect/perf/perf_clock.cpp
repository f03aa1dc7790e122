#include "collect/perf/perf_clock.hpp"

#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>

#include "base/clock.hpp"
#include "collect/perf/perf_record.hpp"
#include "collect/perf/perf_ring.hpp"

namespace ddprof {

Result<PerfClock> PerfClock::calibrate(const AttrFeatures& features) {
  if (features.clockid) return PerfClock();
  // Giving the calling thread the name that it has makes the kernel write a record, at a moment that is
  // known.
  perf_event_attr attr = ring_attr(features, 1);
  attr.comm = 1;
  attr.disabled = 0;
  UniqueFd fd = TRY(open_perf_event(attr, kSelf, kAnyCpu, "clock"));
  PerfRing ring = TRY(PerfRing::map(fd.get(), 1));
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  std::int64_t before = monotonic_now().count();
  ::prctl(PR_SET_NAME, name.data());
  std::int64_t after = monotonic_now().count();
  ring.refresh();
  auto time = record_time(ring.peek());
  if (!time) return make_error(ErrorCode::unsupported, "calibrate the clock of perf events: no record came");
  return PerfClock(before + (after - before) / 2 - static_cast<std::int64_t>(*time));
}

std::uint64_t PerfClock::now() const { return static_cast<std::uint64_t>(monotonic_now().count() - offset_); }

}  // namespace ddprof
