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

Result<Delivery> delivery_of(const Answer& answer) {
  if (answer.error) return *answer.error;
  return Delivery::arrived;
}

}  // namespace

void UploadDestination::Sum::add(Result<Delivery> delivery) {
  requests_++;
  if (delivery) {
    if (*delivery == Delivery::waits) least_ = Delivery::waits;
    return;
  }
  lost_++;
  if (!first_error_) first_error_ = std::move(delivery).error();
}

Result<Delivery> UploadDestination::Sum::total() && {
  if (!first_error_) return least_;
  if (requests_ > 1) first_error_->message += fmt::format(" ({} of {} uploads are lost)", lost_, requests_);
  return std::move(*first_error_);
}

Result<Delivery> UploadDestination::send(const Batch& batch) {
  Sum sum;
  std::vector<UploadRequest> requests;
  for (Result<UploadRequest>& request : peer_.pack(batch)) {
    if (!request) {
      sum.add(std::move(request).error());
    } else if (!request->body.empty()) {
      requests.push_back(std::move(request).value());
    }
  }
  const auto end = Clock::now() + options_.patience;
  if (must_wait()) {
    send_behind_spooled(requests, end, sum);  // also when there is nothing to tell: others may wait
  } else {
    send_in_order(requests, end, sum);
  }
  tell_when_over();
  publish_counters();
  return std::move(sum).total();
}

bool UploadDestination::must_wait() const {
  return options_.spool && (Clock::now() < not_before_ || !options_.spool->is_empty());
}

// What is begun too late may be taken by a peer whose answer comes too late, and be sent twice.
bool UploadDestination::is_late(Clock::time_point end) const {
  return Clock::now() >= end - options_.patience / 4;
}

void UploadDestination::send_behind_spooled(Requests requests, Clock::time_point end, Sum& sum) {
  std::set<std::string> spooled;
  std::vector<std::pair<const UploadRequest*, Error>> unspooled;
  for (const UploadRequest& request : requests) {
    auto name = add_to_spool(request);
    if (name) {
      spooled.insert(std::move(name).value());
    } else {
      unspooled.emplace_back(&request, std::move(name).error());
    }
  }
  deliver_spooled(spooled, end, sum);
  // On a disk that is full or cannot be written, waiting is no choice.
  for (const auto& [request, why] : unspooled) sum.add(send_without_spool(*request, end, why));
}

Result<Delivery> UploadDestination::send_without_spool(const UploadRequest& request, Clock::time_point end,
                                                       const Error& why) {
  Answer answer = post(request, end);
  tell(answer);
  if (!answer.error) return Delivery::arrived;
  answer.error->message += "; " + why.message;
  return std::move(*answer.error);
}

void UploadDestination::send_in_order(Requests requests, Clock::time_point end, Sum& sum) {
  bool must_spool = false;
  for (const UploadRequest& request : requests) {
    if (must_spool) {
      sum.add(spool_or_send(request, end));
      continue;
    }
    const Answer answer = post(request, end);
    tell(answer);
    const bool is_outage = answer.error && answer.kind != Answer::Kind::refused;
    must_spool = options_.spool && (is_outage || is_late(end));
    sum.add(is_outage && options_.spool ? spool_after_failure(request, answer) : delivery_of(answer));
  }
}

Result<Delivery> UploadDestination::spool_after_failure(const UploadRequest& request, const Answer& answer) {
  const auto name = add_to_spool(request);
  if (name) return Delivery::waits;
  Error error = *answer.error;
  error.message += "; " + name.error().message;
  return error;
}

Result<Delivery> UploadDestination::spool_or_send(const UploadRequest& request, Clock::time_point end) {
  const auto name = add_to_spool(request);
  if (name) return Delivery::waits;
  return send_without_spool(request, end, name.error());
}

Result<std::string> UploadDestination::add_to_spool(const UploadRequest& request) {
  auto name = options_.spool->add(request);
  if (!name)
    tell_once("spool", with_hint(make_error(name.error().code, "{}; what cannot be delivered is lost now",
                                            name.error().message),
                                 "make room there, or name another place: --spool-dir DIR"));
  return name;
}

void UploadDestination::deliver_spooled(const std::set<std::string>& own, Clock::time_point end, Sum& sum) {
  std::set<std::string> waiting = own;
  std::string suspect;
  const auto attempt = [&](const std::string& name, const UploadRequest& request) {
    if (is_late(end)) return Spool::Fate::waits;
    const Answer answer = post(request, end);
    tell(answer);
    if (answer.kind == Answer::Kind::taken) {
      arrived_late_++;
      if (!suspect.empty()) options_.spool->drop(std::exchange(suspect, ""));
      if (waiting.erase(name) > 0) sum.add(Delivery::arrived);
      return Spool::Fate::delivered;
    }
    if (answer.kind == Answer::Kind::refused) {
      if (waiting.erase(name) == 0) return Spool::Fate::refused;
      sum.add(*answer.error);  // counted by the caller
      return Spool::Fate::delivered;
    }
    if (!suspect.empty() || !is_suspect(name, answer)) return Spool::Fate::waits;
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

// A request that a server cannot digest must not keep all others waiting. When the one behind it is taken, it
// is dropped.
bool UploadDestination::is_suspect(const std::string& name, const Answer& answer) {
  constexpr int kMostFailures = 10;
  if (answer.status < 500) return false;
  if (first_name_ != name) first_failures_ = 0;
  first_name_ = name;
  return ++first_failures_ > kMostFailures;
}

Answer UploadDestination::post(const UploadRequest& request, Clock::time_point end) {
  Answer answer = attempt(request, end);
  for (int attempts = 1; attempts < kMostAttempts && answer.kind == Answer::Kind::later; ++attempts) {
    if (!pause(answer, attempts, end)) break;
    counters_.retries++;
    answer = attempt(request, end);
  }
  if (answer.kind == Answer::Kind::taken) {
    counters_.arrived++;
    counters_.bytes += request.body.size();
  } else if (answer.retry_after) {
    not_before_ = Clock::now() + std::min<std::chrono::seconds>(*answer.retry_after, kLongestPause);
  } else if (stop_.stop_requested() && answer.status == 0) {
    answer.error = with_hint(
        make_error(ErrorCode::failed, "post to {}: no answer before the profiler had to end", peer_.place),
        peer_.hint(0));
  }
  return answer;
}

Answer UploadDestination::attempt(const UploadRequest& request, Clock::time_point end) const {
  if (stop_.stop_requested())
    return {Answer::Kind::later, 0, make_error(ErrorCode::failed, "no time"), {}, {}};
  if (auto refusal = peer_.guard ? peer_.guard() : std::nullopt)
    return {Answer::Kind::later, 0, std::move(*refusal), {}, {}};
  const auto left = std::max(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(1));
  HttpOptions limits;
  limits.first_byte_timeout = limits.progress_timeout = limits.total_timeout = left;
  limits.connect_timeout = left / 2;
  limits.certificate_file = peer_.certificate_file;
  if (peer_.uses_proxy) limits.proxies = environment_variable;
  limits.stop = stop_.get_token();
  HttpPost post{request.query.empty() ? peer_.url : fmt::format("{}?{}", peer_.url, request.query),
                peer_.socket, request.content_type, peer_.headers, std::as_bytes(std::span(request.body))};
  post.wants_body = peer_.objection != nullptr;
  post.headers.insert(post.headers.end(), request.headers.begin(), request.headers.end());
  const auto begin = Clock::now();
  Answer answer = judge(http_post(post, limits), peer_);
  if (options_.voice.say_debug)
    options_.voice.say_debug(fmt::format(
        "{} ({} bytes, {} ms)",
        answer.error ? answer.error->message
                     : fmt::format("post to {}: status {}", peer_.place, answer.status),
        request.body.size(), std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count()));
  return answer;
}

bool UploadDestination::pause(const Answer& answer, int attempts, Clock::time_point end) {
  const auto left = std::chrono::floor<milliseconds>(end - Clock::now());
  const milliseconds jitter = random_up_to(options_.patience / 20 * (1 << attempts));
  const milliseconds length = answer.retry_after.value_or(std::chrono::seconds(0)) + jitter;
  // Half of the time for the pause, half for the answer. A peer that hung until now gets no second chance.
  if (left <= options_.patience / 10 || length > left / 2) return false;
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop_.get_token(), length, [] { return false; });
  return !stop_.stop_requested();
}

void UploadDestination::tell(const Answer& answer) {
  if (answer.objection) std::ignore = tell_once("objection", *answer.objection);
  if (!answer.error && !answer.objection) return troubles_.clear();
  if (!answer.error) return;
  if (stop_.stop_requested() && !troubles_.empty()) return;  // that it ends explains nothing new
  Error error = *answer.error;
  const bool is_outage = answer.kind != Answer::Kind::refused;
  if (is_outage && options_.spool) error.message += "; profiles wait in " + options_.spool->path();
  // The words for one trouble may differ: what a server says has a number or a date in it, and one that
  // closes is seen to end or to break off.
  if (tell_once(fmt::to_string(answer.status), error) && is_outage && !std::exchange(is_outage_told_, true))
    arrived_late_ = 0;
}

// Once until it has passed, and now and then if it comes again and again.
bool UploadDestination::tell_once(const std::string& key, const Error& trouble) {
  constexpr std::size_t kMostTroubles = 8;
  constexpr auto kNowAndThen = std::chrono::minutes(10);
  if (!options_.voice.say || troubles_.size() >= kMostTroubles || !troubles_.insert(key).second) return false;
  const auto now = Clock::now();
  if (last_told_.size() > kMostTroubles) last_told_.clear();
  const auto [told, is_new] = last_told_.try_emplace(key, now);
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
    counters.waiting = state.requests;
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
