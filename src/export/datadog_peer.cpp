#include "export/datadog_peer.hpp"

#include <algorithm>
#include <random>

#include "encode/compression.hpp"
#include "encode/datadog_profile.hpp"
#include "profile/profile.hpp"

namespace ddprof {

void ShareStreams::begin_batch(std::uint64_t sequence) {
  if (has_batch_ && sequence > batch_ + 1) {
    for (auto& [identity, stream] : streams_)
      if (stream.last_batch == batch_) stream.next += sequence - batch_ - 1;
  }
  if (!has_batch_) first_batch_ = sequence;
  batch_ = sequence;
  has_batch_ = true;
}

ShareStreams::Place ShareStreams::next(const ProcessIdentity& identity) {
  if (streams_.size() >= kMostStreams && !streams_.contains(identity)) forget_oldest();
  auto [known, is_new] = streams_.try_emplace(identity);
  Stream& stream = known->second;
  if (is_new) stream = begun(identity);
  stream.last_batch = batch_;
  return {stream.runtime_id, stream.next++};
}

// An id that is not ours to choose may have been used by the worker before this one, whose numbers end below
// those of our batches.
ShareStreams::Stream ShareStreams::begun(const ProcessIdentity& identity) const {
  const std::string& known_id = identity.service.empty() ? host_id_ : identity.instance_id;
  if (known_id.empty()) return {new_id_(), 0, batch_};
  return {known_id, first_batch_, batch_};
}

// If it comes again, it is a new stream.
void ShareStreams::forget_oldest() {
  const auto oldest = std::min_element(
      streams_.begin(), streams_.end(),
      [](const auto& one, const auto& other) { return one.second.last_batch < other.second.last_batch; });
  if (oldest != streams_.end()) streams_.erase(oldest);
}

namespace {

// Larger ones are taken, and then not looked at.
constexpr std::size_t kMaxPprofBytes = 10U << 20U;
constexpr int kFastest = 1;  // of the levels: the profiler pays for the rest

constexpr const char* kSmallerProfiles = "send smaller profiles: a shorter --upload-period, or --no-timeline";

std::string agent_hint(unsigned status) {
  if (status == 0) return "start the agent, or name it: --url, DD_TRACE_AGENT_URL";
  if (status >= 300 && status < 400) return "name the right address: --url, DD_TRACE_AGENT_URL";
  switch (status) {
    case 401:
    case 403:
      return "give the agent an API key that is valid";
    case 404:
      return "a Datadog agent takes profiles from version 7.20 on; is it one? ddprof doctor";
    case 413:
      return kSmallerProfiles;
    default:
      return "look at the agent: its log, its API key, and: ddprof doctor";
  }
}

std::string intake_hint(unsigned status) {
  if (status == 0)
    return "see that this machine reaches the intake, by HTTPS_PROXY if need be, or use an agent";
  if (status == 401 || status == 403)
    return "give an API key that is valid at this site: DD_API_KEY, --api-key; DD_SITE, --site";
  if (status == 413) return kSmallerProfiles;
  if (status < 500 && status != 408 && status != 429) return "name the right site: --site, DD_SITE";
  return "wait, as the profiles do; if it does not pass, send through an agent";
}

bool may_pass_datadog(unsigned status) { return status == 408 || status == 429 || status >= 500; }

// Receivers of the older generations know nothing of zstd, which is faster and smaller.
Result<std::string> compress_for(IntakeFormat format, const std::string& pprof) {
  std::string bytes = TRY(format == IntakeFormat::version_4 ? zstd(pprof, kFastest) : gzip(pprof, kFastest));
  if (bytes.size() <= kMaxPprofBytes) return bytes;
  return with_hint(
      make_error(ErrorCode::exhausted, "a profile of {} MiB, of which Datadog takes 10", bytes.size() >> 20U),
      kSmallerProfiles);
}

std::string columns_of(const Profile& profile) {
  std::string names;
  for (const ValueType& type : profile.value_types) {
    if (!names.empty()) names += ',';
    names += profile.text(type.type);
  }
  return names;
}

Result<std::vector<Attachment>> attachments_of(IntakeFormat format, const Batch& batch) {
  // One file has the name that libdatadog gives it; the form of version 3 is older than that.
  const bool is_single = batch.parts.size() == 1 && format == IntakeFormat::version_4;
  std::vector<Attachment> attachments;
  for (const Batch::Part& part : batch.parts) {
    const bool needs_columns = format == IntakeFormat::form;
    attachments.push_back({is_single ? "profile.pprof" : part.kind + ".pprof",
                           TRY(compress_for(format, encode_for_datadog(part.profile))),
                           needs_columns ? columns_of(for_datadog(part.profile)) : ""});
  }
  return attachments;
}

bool has_containers(const Batch& batch) {
  return std::any_of(batch.parts.begin(), batch.parts.end(), [](const Batch::Part& part) {
    const std::vector<std::string>& strings = part.profile.strings;
    return std::find(strings.begin(), strings.end(), kContainerIdLabel) != strings.end();
  });
}

MultipartForm body_of(IntakeFormat format, const DatadogIdentity& identity, const DatadogEvent& event,
                      std::vector<Attachment> attachments) {
  std::random_device seed;
  std::mt19937_64 generator((std::uint64_t{seed()} << 32U) | seed());
  const auto random = [&generator] { return generator(); };
  if (format == IntakeFormat::version_4) return datadog_body(identity, event, std::move(attachments), random);
  return datadog_form(format, identity, event, std::move(attachments), random);
}

// What differs between the uploads of a batch.
struct Sender {
  DatadogIdentity identity;
  HttpHeaders headers;
  std::uint64_t sequence = 0;
  bool has_one_container = false;  // which the headers name
};

Result<UploadRequest> pack_for_datadog(IntakeFormat format, const Sender& sender, const Batch& batch) {
  DatadogEvent event{.start = batch.start, .end = batch.end, .sequence = sender.sequence};
  if (!sender.has_one_container && has_containers(batch)) event.dimensions.emplace_back(kContainerIdLabel);
  MultipartForm form = body_of(format, sender.identity, event, TRY(attachments_of(format, batch)));
  return UploadRequest{.sequence = sender.sequence,
                       .start = batch.start,
                       .end = batch.end,
                       .query = {},
                       .content_type = std::move(form.content_type),
                       .headers = sender.headers,
                       .body = std::move(form.bytes)};
}

// By these the agent finds the tags of a container, which may not be ours.
HttpHeaders headers_of(const ProcessIdentity& process) {
  HttpHeaders headers;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) headers.emplace_back(name, value);
  };
  add("Datadog-Container-ID", process.container_id);
  add("Datadog-Entity-ID", process.entity_id);
  add("Datadog-External-Env", process.external_environment);
  return headers;
}

// The machine is the same for all. A version is that of one service.
Sender sender_of(const DatadogOptions& options, const Share& share, ShareStreams::Place place) {
  Sender sender{options.identity, headers_of(options.target), place.sequence, false};
  sender.identity.runtime_id = std::move(place.runtime_id);
  if (share.identity.service.empty()) return sender;
  sender.identity.service = share.identity.service;
  sender.identity.version = share.identity.version;
  if (!share.identity.environment.empty()) sender.identity.environment = share.identity.environment;
  sender.identity.process_id = share.process_id;
  sender.identity.process_tags = share.identity.process_tags;
  sender.headers = headers_of(share.identity);
  sender.has_one_container = true;
  return sender;
}

Sender sender_of(const DatadogOptions& options, const Batch& batch) {
  Sender sender{options.identity, headers_of(options.target), batch.sequence, false};
  const auto take = [](std::string& field, bool is_chosen, const std::string& published) {
    if (!is_chosen && !published.empty()) field = published;
  };
  DatadogIdentity& identity = sender.identity;
  take(identity.service, options.has_service, batch.target.service);
  take(identity.environment, !identity.environment.empty(), batch.target.environment);
  take(identity.version, !identity.version.empty(), batch.target.version);
  take(identity.runtime_id, options.has_runtime_id, batch.target.instance_id);
  take(identity.process_tags, false, batch.target.process_tags);
  return sender;
}

std::vector<Result<UploadRequest>> pack_shares_for_datadog(const DatadogOptions& options,
                                                           ShareStreams& streams, const Batch& batch) {
  if (!options.shares) return {pack_for_datadog(options.format, sender_of(options, batch), batch)};
  std::vector<Result<UploadRequest>> requests;
  streams.begin_batch(batch.sequence);
  options.shares->cut(batch, [&](const Share& share) {
    const Sender sender = sender_of(options, share, streams.next(share.identity));
    requests.push_back(pack_for_datadog(options.format, sender, share.batch));
  });
  return requests;
}

std::string_view path_at(bool is_intake, IntakeFormat format) {
  if (!is_intake) return "/profiling/v1/input";
  return format == IntakeFormat::version_4 ? "/api/v2/profile" : "/v1/input";
}

// What is packed may wait on a disk.
DatadogOptions without_key(DatadogOptions options) {
  options.api_key.clear();
  return options;
}

}  // namespace

Peer datadog_peer(const DatadogOptions& options) {
  const bool is_intake = !options.api_key.empty();
  Peer peer;
  peer.url = options.agent.url + std::string(path_at(is_intake, options.format));
  // Bodies of another generation must not wait where they would be sent to this path.
  const bool has_old_path = is_intake && options.format != IntakeFormat::version_4;
  peer.place = has_old_path ? peer.url : options.agent.text();
  peer.socket = options.agent.socket;
  peer.headers = {{"DD-EVP-ORIGIN", "ddprof"}, {"DD-EVP-ORIGIN-VERSION", DDPROF_VERSION}};
  if (is_intake) peer.headers.emplace_back("DD-API-KEY", options.api_key);
  peer.uses_proxy = is_intake;  // an agent is near
  peer.pack = [packing = without_key(options),
               streams = std::make_shared<ShareStreams>(options.identity.runtime_id, options.new_runtime_id)](
                  const Batch& batch) { return pack_shares_for_datadog(packing, *streams, batch); };
  peer.may_pass = may_pass_datadog;
  peer.hint = is_intake ? intake_hint : agent_hint;
  return peer;
}

}  // namespace ddprof
