#include "export/upload_destination.hpp"

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>

#include "net/http_post.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;

constexpr int kMostAttempts = 3;
constexpr std::chrono::seconds kLongestPause = std::chrono::hours(1);  // whatever a peer asks for

milliseconds random_up_to(milliseconds limit) {
  std::random_device random;
  return milliseconds(std::uniform_int_distribution<std::int64_t>(0, limit.count())(random));
}

Result<Delivery> delivery_of(const Verdict& verdict) {
  if (verdict.error) return *verdict.error;
  return Delivery::arrived;
}

}  // namespace

void UploadDestination::Sum::add(Result<Delivery> delivery) {
  parcels_++;
  if (delivery) {
    if (*delivery == Delivery::waits) least_ = Delivery::waits;
    return;
  }
  lost_++;
  if (!first_error_) first_error_ = std::move(delivery).error();
}

Result<Delivery> UploadDestination::Sum::total() && {
  if (!first_error_) return least_;
  if (parcels_ > 1) first_error_->message += fmt::format(" ({} of {} uploads are lost)", lost_, parcels_);
  return std::move(*first_error_);
}

Result<Delivery> UploadDestination::send(const Batch& batch) {
  Sum sum;
  std::vector<Parcel> parcels;
  for (Result<Parcel>& parcel : peer_.pack(batch)) {
    if (!parcel) {
      sum.add(std::move(parcel).error());
    } else if (!parcel->body.empty()) {
      parcels.push_back(std::move(parcel).value());
    }
  }
  const auto end = Clock::now() + options_.patience;
  if (must_wait()) {
    line_up(parcels, end, sum);  // also when there is nothing to tell: others may wait
  } else {
    post_or_keep(parcels, end, sum);
  }
  tell_when_over();
  publish_counters();
  return std::move(sum).total();
}

bool UploadDestination::must_wait() const {
  return options_.spool && (Clock::now() < not_before_ || !options_.spool->is_empty());
}

// What is begun too late may be taken by a peer whose answer nobody hears any more, and be sent twice.
bool UploadDestination::is_late(Clock::time_point end) const {
  return Clock::now() >= end - options_.patience / 4;
}

void UploadDestination::line_up(Parcels parcels, Clock::time_point end, Sum& sum) {
  std::set<std::string> kept;
  std::vector<std::pair<const Parcel*, Error>> homeless;
  for (const Parcel& parcel : parcels) {
    auto name = keep(parcel);
    if (name) {
      kept.insert(std::move(name).value());
    } else {
      homeless.emplace_back(&parcel, std::move(name).error());
    }
  }
  deliver_waiting(kept, end, sum);
  // On a disk that is full or cannot be written, waiting is no choice.
  for (const auto& [parcel, why] : homeless) sum.add(post_without_keeping(*parcel, end, why));
}

Result<Delivery> UploadDestination::post_without_keeping(const Parcel& parcel, Clock::time_point end,
                                                         const Error& why) {
  Verdict verdict = post(parcel, end);
  tell(verdict);
  if (!verdict.error) return Delivery::arrived;
  verdict.error->message += "; " + why.message;
  return std::move(*verdict.error);
}

void UploadDestination::post_or_keep(Parcels parcels, Clock::time_point end, Sum& sum) {
  bool must_line_up = false;
  for (const Parcel& parcel : parcels) {
    if (must_line_up) {
      sum.add(keep_or_post(parcel, end));
      continue;
    }
    const Verdict verdict = post(parcel, end);
    tell(verdict);
    const bool is_outage = verdict.error && verdict.kind != Verdict::Kind::refused;
    must_line_up = options_.spool && (is_outage || is_late(end));
    sum.add(is_outage && options_.spool ? keep_after(parcel, verdict) : delivery_of(verdict));
  }
}

Result<Delivery> UploadDestination::keep_after(const Parcel& parcel, const Verdict& verdict) {
  const auto name = keep(parcel);
  if (name) return Delivery::waits;
  Error error = *verdict.error;
  error.message += "; " + name.error().message;
  return error;
}

Result<Delivery> UploadDestination::keep_or_post(const Parcel& parcel, Clock::time_point end) {
  const auto name = keep(parcel);
  if (name) return Delivery::waits;
  return post_without_keeping(parcel, end, name.error());
}

Result<std::string> UploadDestination::keep(const Parcel& parcel) {
  auto name = options_.spool->add(parcel);
  if (!name)
    tell_once("spool", with_hint(make_error(name.error().code, "{}; what cannot be delivered is lost now",
                                            name.error().message),
                                 "make room there, or name another place: --spool-dir DIR"));
  return name;
}

void UploadDestination::deliver_waiting(const std::set<std::string>& own, Clock::time_point end, Sum& sum) {
  std::set<std::string> waiting = own;
  std::string suspect;
  const auto attempt = [&](const std::string& name, const Parcel& parcel) {
    if (is_late(end)) return Spool::Fate::kept;
    const Verdict verdict = post(parcel, end);
    tell(verdict);
    if (verdict.kind == Verdict::Kind::taken) {
      arrived_late_++;
      if (!suspect.empty()) options_.spool->drop(std::exchange(suspect, ""));
      if (waiting.erase(name) > 0) sum.add(Delivery::arrived);
      return Spool::Fate::delivered;
    }
    if (verdict.kind == Verdict::Kind::refused) {
      if (waiting.erase(name) == 0) return Spool::Fate::refused;
      sum.add(*verdict.error);  // counted by whoever asked
      return Spool::Fate::delivered;
    }
    if (!suspect.empty() || !is_suspect(name, verdict)) return Spool::Fate::kept;
    suspect = name;
    return Spool::Fate::passed_over;
  };
  auto delivered = Clock::now() >= not_before_ ? options_.spool->deliver(attempt) : Result<void>();
  if (!delivered) {
    Error error = std::move(delivered).error();
    error.message += "; it stays there for another try";
    tell_once("unreadable", error);
  }
  for (std::size_t left = waiting.size(); left > 0; --left) sum.add(Delivery::waits);
}

// A parcel that a server cannot digest must not keep all others waiting. When the one behind it is taken, it
// is dropped.
bool UploadDestination::is_suspect(const std::string& name, const Verdict& verdict) {
  constexpr int kMostFailures = 10;
  if (verdict.status < 500) return false;
  if (first_name_ != name) first_failures_ = 0;
  first_name_ = name;
  return ++first_failures_ > kMostFailures;
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
  } else if (verdict.retry_after) {
    not_before_ = Clock::now() + std::min<std::chrono::seconds>(*verdict.retry_after, kLongestPause);
  } else if (stop_.stop_requested() && verdict.status == 0) {
    verdict.error = with_hint(
        make_error(ErrorCode::failed, "post to {}: no answer before the profiler had to end", peer_.place),
        peer_.cure(0));
  }
  return verdict;
}

Verdict UploadDestination::attempt(const Parcel& parcel, Clock::time_point end) const {
  if (stop_.stop_requested())
    return {Verdict::Kind::later, 0, make_error(ErrorCode::failed, "no time"), {}, {}};
  if (auto refusal = peer_.guard ? peer_.guard() : std::nullopt)
    return {Verdict::Kind::later, 0, std::move(*refusal), {}, {}};
  const auto left = std::max(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(1));
  HttpOptions limits;
  limits.first_byte_timeout = limits.progress_timeout = limits.total_timeout = left;
  limits.connect_timeout = left / 2;
  limits.certificate_file = peer_.certificate_file;
  if (peer_.uses_proxy) limits.proxies = environment_variable;
  limits.stop = stop_.get_token();
  HttpPost post{parcel.query.empty() ? peer_.url : fmt::format("{}?{}", peer_.url, parcel.query),
                peer_.socket, parcel.content_type, peer_.headers, std::as_bytes(std::span(parcel.body))};
  post.wants_body = peer_.objection != nullptr;
  post.headers.insert(post.headers.end(), parcel.headers.begin(), parcel.headers.end());
  const auto begin = Clock::now();
  Verdict verdict = judge(http_post(post, limits), peer_);
  if (options_.voice.say_debug)
    options_.voice.say_debug(fmt::format(
        "{} ({} bytes, {} ms)",
        verdict.error ? verdict.error->message
                      : fmt::format("post to {}: status {}", peer_.place, verdict.status),
        parcel.body.size(), std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count()));
  return verdict;
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

void UploadDestination::tell(const Verdict& verdict) {
  if (verdict.objection) std::ignore = tell_once("objection", *verdict.objection);
  if (!verdict.error && !verdict.objection) return troubles_.clear();
  if (!verdict.error) return;
  if (stop_.stop_requested() && !troubles_.empty()) return;  // that it ends explains nothing new
  Error error = *verdict.error;
  const bool is_outage = verdict.kind != Verdict::Kind::refused;
  if (is_outage && options_.spool) error.message += "; profiles wait in " + options_.spool->path();
  // The words for one trouble may differ: what a server says has a number or a date in it, and one that
  // closes is seen to end or to break off.
  if (tell_once(fmt::to_string(verdict.status), error) && is_outage && !std::exchange(is_outage_told_, true))
    arrived_late_ = 0;
}

// Once until it has passed, and now and then if it comes again and again.
bool UploadDestination::tell_once(const std::string& key, const Error& trouble) {
  constexpr std::size_t kMostTroubles = 8;
  constexpr auto kNowAndThen = std::chrono::minutes(10);
  if (!options_.voice.say || troubles_.size() >= kMostTroubles || !troubles_.insert(key).second) return false;
  const auto now = Clock::now();
  if (told_.size() > kMostTroubles) told_.clear();
  const auto [told, is_new] = told_.try_emplace(key, now);
  if (!is_new && now - told->second < kNowAndThen) return false;
  told->second = now;
  options_.voice.say(trouble);
  return true;
}

void UploadDestination::tell_when_over() {
  if (!is_outage_told_ || !troubles_.empty() || must_wait()) return;
  is_outage_told_ = false;
  if (options_.voice.say_notice)
    options_.voice.say_notice(
        fmt::format("{} takes profiles again, {} had waited", peer_.place, arrived_late_));
  arrived_late_ = 0;
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
