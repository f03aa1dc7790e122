#include "export/datadog_destination.hpp"

#include <algorithm>
#include <random>

#include "encode/datadog_profile.hpp"
#include "encode/gzip.hpp"
#include "encode/pprof.hpp"
#include "net/http_post.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kInput = "/profiling/v1/input";
// Larger ones are taken, and then not looked at.
constexpr std::size_t kMaxPprofBytes = 10U << 20U;
constexpr int kFastest = 1;  // of gzip's levels: the profiler pays for the rest

milliseconds random_up_to(milliseconds limit) {
  std::random_device random;
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, limit.count())(random));
}

}  // namespace

Result<MultipartForm> DatadogDestination::body_of(const Profile& profile, std::uint64_t sequence) const {
  std::string pprof = TRY(gzip(encode_pprof(for_datadog(profile)), kFastest));
  if (pprof.size() > kMaxPprofBytes)
    return with_hint(
        make_error(ErrorCode::exhausted, "post to {}: a profile of {} MiB, of which 10 are taken", describe(),
                   pprof.size() >> 20U),
        "send smaller profiles: a shorter --upload-period, or --no-timeline");
  const Nanoseconds start(profile.time_ns);
  const DatadogEvent event{start, start + Nanoseconds(profile.duration_ns), sequence};
  std::random_device seed;
  std::mt19937_64 random((std::uint64_t{seed()} << 32U) | seed());
  return datadog_body(options_.identity, event, std::move(pprof), [&random] { return random(); });
}

Result<void> DatadogDestination::send(const Profile& profile, std::uint64_t sequence) {
  auto sent =
      stop_.stop_requested() ? Result<void>(make_error(ErrorCode::failed, "no time")) : Result<void>();
  if (sent) sent = deliver(TRY(body_of(profile, sequence)));
  if (sent || !stop_.stop_requested()) return sent;
  return with_hint(
      make_error(ErrorCode::failed, "post to {}: no answer before the profiler had to end", describe()),
      "look whether the agent answers: ddprof doctor");
}

Result<void> DatadogDestination::deliver(const MultipartForm& form) {
  const auto end = Clock::now() + options_.patience;
  DatadogVerdict verdict = attempt(form, end);
  if (verdict.refusal && verdict.may_pass) {
    const auto pause = pause_after(verdict, end);
    if (pause && wait(*pause)) verdict = attempt(form, end);
  }
  if (verdict.refusal) return std::move(*verdict.refusal);
  return {};
}

DatadogVerdict DatadogDestination::attempt(const MultipartForm& form, Clock::time_point end) const {
  const auto left = std::max(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(1));
  HttpOptions limits;
  limits.first_byte_timeout = limits.progress_timeout = limits.total_timeout = left;
  limits.connect_timeout = left / 2;
  limits.stop = stop_.get_token();
  HttpPost post{options_.agent.url + std::string(kInput), options_.agent.socket, form.content_type,
                options_.headers, std::as_bytes(std::span(form.bytes))};
  post.headers.emplace_back("DD-EVP-ORIGIN", "ddprof");
  post.headers.emplace_back("DD-EVP-ORIGIN-VERSION", DDPROF_VERSION);
  return judge(http_post(post, limits), describe());
}

std::optional<milliseconds> DatadogDestination::pause_after(const DatadogVerdict& verdict,
                                                            Clock::time_point end) const {
  const auto left = std::chrono::floor<milliseconds>(end - Clock::now());
  const milliseconds pause =
      verdict.retry_after.value_or(std::chrono::seconds(0)) + random_up_to(options_.patience / 10);
  // Half of the time for the pause, half for the answer. An agent that hung until now gets no second one.
  const bool has_time = left > options_.patience / 10 && pause <= left / 2;
  return has_time ? std::optional(pause) : std::nullopt;
}

bool DatadogDestination::wait(milliseconds pause) {
  std::unique_lock lock(mutex_);
  never_.wait_for(lock, stop_.get_token(), pause, [] { return false; });
  return !stop_.stop_requested();
}

}  // namespace ddprof
