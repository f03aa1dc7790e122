#include "export/upload_destination.hpp"

#include <algorithm>
#include <random>

#include "net/http_post.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;

constexpr int kMostAttempts = 3;

milliseconds random_up_to(milliseconds limit) {
  std::random_device random;
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, limit.count())(random));
}

}  // namespace

Result<Delivery> UploadDestination::send(const Batch& batch) {
  const Parcel parcel = TRY(peer_.pack(batch));
  const auto end = Clock::now() + options_.patience;
  Result<Delivery> delivery = Delivery::waits;
  if (has_waiting()) {  // it is not its turn yet
    delivery = keep(parcel, make_error(ErrorCode::failed, "post to {}: others wait", peer_.place));
    deliver_waiting(end);
    if (delivery && !has_waiting()) delivery = Delivery::arrived;
  } else {
    Verdict verdict = post(parcel, end);
    say_once(verdict);
    if (verdict.kind == Verdict::Kind::taken) {
      delivery = Delivery::arrived;
    } else if (verdict.kind == Verdict::Kind::refused) {
      delivery = std::move(*verdict.error);
    } else {
      delivery = keep(parcel, std::move(*verdict.error));
    }
  }
  publish_counters();
  return delivery;
}

Result<Delivery> UploadDestination::keep(const Parcel& parcel, Error trouble) {
  if (!options_.spool) return trouble;
  auto kept = options_.spool->add(parcel);
  if (kept) return Delivery::waits;
  trouble.message += fmt::format("; it cannot wait either: {}", kept.error().message);
  return trouble;
}

void UploadDestination::deliver_waiting(Clock::time_point end) {
  options_.spool->deliver([this, end](const Parcel& parcel) {
    if (Clock::now() >= end) return Spool::Fate::kept;
    const Verdict verdict = post(parcel, end);
    say_once(verdict);
    if (verdict.kind == Verdict::Kind::taken) return Spool::Fate::delivered;
    return verdict.kind == Verdict::Kind::refused ? Spool::Fate::refused : Spool::Fate::kept;
  });
}

Verdict UploadDestination::post(const Parcel& parcel, Clock::time_point end) {
  Verdict verdict = attempt(parcel, end);
  for (int attempts = 1; attempts < kMostAttempts && verdict.kind == Verdict::Kind::later; ++attempts) {
    if (!pause(verdict, attempts, end)) break;
    counters_.retries++;
    verdict = attempt(parcel, end);
  }
  if (verdict.kind == Verdict::Kind::taken) {
    counters_.arrived++;
    counters_.bytes += parcel.body.size();
  } else if (stop_.stop_requested()) {
    verdict.error =
        make_error(ErrorCode::failed, "post to {}: no answer before the profiler had to end", peer_.place);
    verdict.error = with_hint(std::move(*verdict.error), peer_.cure(0));
  }
  return verdict;
}

Verdict UploadDestination::attempt(const Parcel& parcel, Clock::time_point end) const {
  if (stop_.stop_requested()) return {Verdict::Kind::later, make_error(ErrorCode::failed, "no time"), {}};
  const auto left = std::max(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(1));
  HttpOptions limits;
  limits.first_byte_timeout = limits.progress_timeout = limits.total_timeout = left;
  limits.connect_timeout = left / 2;
  limits.certificate_file = peer_.certificate_file;
  if (peer_.uses_proxy) limits.proxies = environment_variable;
  limits.stop = stop_.get_token();
  HttpPost post{parcel.query.empty() ? peer_.url : fmt::format("{}?{}", peer_.url, parcel.query),
                peer_.socket, parcel.content_type, peer_.headers, std::as_bytes(std::span(parcel.body))};
  post.headers.insert(post.headers.end(), parcel.headers.begin(), parcel.headers.end());
  return judge(http_post(post, limits), peer_);
}

bool UploadDestination::pause(const Verdict& verdict, int attempts, Clock::time_point end) {
  const auto left = std::chrono::floor<milliseconds>(end - Clock::now());
  const milliseconds jitter = random_up_to(options_.patience / 20 * (1 << attempts));
  const milliseconds length = verdict.retry_after.value_or(std::chrono::seconds(0)) + jitter;
  // Half of the time for the pause, half for the answer. A peer that hung until now gets no second chance.
  if (left <= options_.patience / 10 || length > left / 2) return false;
  std::unique_lock lock(mutex_);
  never_.wait_for(lock, stop_.get_token(), length, [] { return false; });
  return !stop_.stop_requested();
}

void UploadDestination::say_once(const Verdict& verdict) {
  constexpr std::size_t kMostTroubles = 8;
  if (!verdict.error) {
    said_.clear();
  } else if (said_.size() < kMostTroubles && said_.insert(verdict.error->message).second && options_.say) {
    options_.say(*verdict.error);
  }
}

void UploadDestination::publish_counters() {
  DeliveryCounters counters = counters_;
  if (options_.spool) {
    const Spool::State state = options_.spool->state();
    counters.waiting = state.parcels;
    counters.waiting_bytes = state.bytes;
    counters.dropped = state.dropped;
  }
  std::lock_guard lock(mutex_);
  published_counters_ = counters;
}

DeliveryCounters UploadDestination::counters() const {
  std::lock_guard lock(mutex_);
  return published_counters_;
}

}  // namespace ddprof
