#include "collect/perf/fork_storm.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kWindow = 500'000'000;
constexpr std::uint64_t kEnoughInAll = 50;     // a shell script's start is not a storm
constexpr std::uint64_t kEnoughInWindow = 10;  // 20 a second

}  // namespace

void ForkStorm::task_ended(std::uint64_t time_ns, bool was_sampled) {
  is_raging(time_ns);
  ++ended_;
  if (was_sampled) return;
  ++unsampled_;
  ++all_unsampled_;
}

bool ForkStorm::is_raging(std::uint64_t now_ns) {
  if (window_start_ == 0) window_start_ = now_ns;
  if (now_ns > window_start_ && now_ns - window_start_ >= kWindow) {
    close_window();
    window_start_ = now_ns;
  }
  return is_raging_;
}

void ForkStorm::close_window() {
  bool few_sampled = (ended_ - unsampled_) * 4 < ended_;
  if (all_unsampled_ >= kEnoughInAll && unsampled_ > kEnoughInWindow && few_sampled) is_raging_ = true;
  ended_ = 0;
  unsampled_ = 0;
}

}  // namespace ddprof
