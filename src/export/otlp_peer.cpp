#include "export/otlp_peer.hpp"

#include <algorithm>
#include <utility>

#include "encode/gzip.hpp"
#include "export/addresses.hpp"
#include "export/otlp_answer.hpp"
#include "profile/timeline.hpp"

namespace ddprof {

namespace {

// Of one request, before it is compressed: the protocol's own limit for both sides.
constexpr std::size_t kMaxOtlpBytes = 64U << 20U;
constexpr int kOtlpGzipLevel = 1;  // the profiler pays for more

std::string otlp_cure(unsigned status) {
  if (status == 0)
    return "start the collector, or name it: --otlp-endpoint, OTEL_EXPORTER_OTLP_ENDPOINT; HTTP is spoken "
           "(port "
           "4318), not gRPC (4317)";
  if (status >= 300 && status < 400) return "name the right address: --otlp-endpoint";
  switch (status) {
    case 401:
    case 403:
      return "give the collector the headers that it wants: OTEL_EXPORTER_OTLP_HEADERS";
    case 404:
    case 405:
      return "let the collector take profiles: --feature-gates=+service.profilesSupport, and a pipeline of "
             "them";
    case 413:
      return "send smaller profiles: a shorter --upload-period, or --no-timeline";
    default:
      return "look at the collector's log; it must know opentelemetry-proto 1.10 or later";
  }
}

// All that the protocol lets a client try again.
bool may_pass_otlp(unsigned status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

bool has_values(const Profile& profile) {
  return std::any_of(profile.samples.begin(), profile.samples.end(), [](const ProfileSample& sample) {
    return std::any_of(sample.values.begin(), sample.values.end(),
                       [](std::int64_t value) { return value != 0; });
  });
}

// An environment is usually that of the whole host; a version is that of a service, and nobody else's.
std::vector<std::pair<std::string, std::string>> attributes_of(const ProcessIdentity& identity) {
  std::vector<std::pair<std::string, std::string>> attributes = {{"service.name", identity.service},
                                                                 {"service.version", identity.version}};
  if (!identity.environment.empty())
    attributes.emplace_back("deployment.environment.name", identity.environment);
  if (!identity.instance_id.empty()) attributes.emplace_back("service.instance.id", identity.instance_id);
  return attributes;
}

OtlpResource resource_for(const OtlpOptions& options, const Batch& batch) {
  OtlpResource resource = options.resource;
  if (!options.tells_processes) return resource;
  for (const ProcessIdentity& identity : batch.processes) {
    resource.of_process.emplace_back();
    if (!identity.service.empty()) resource.of_process.back() = attributes_of(identity);
  }
  return resource;
}

Profile without_times(Profile profile) {
  for (ProfileSample& sample : profile.samples) {
    sample.times.clear();
    sample.events = 0;
  }
  return profile;
}

// Empty without samples: such requests are not to be sent.
Result<std::string> otlp_body(const OtlpOptions& options, const OtlpResource& resource,
                              const Profile& profile) {
  if (!has_values(profile)) return std::string();
  std::string request = options.has_times || !has_timeline(profile)
                            ? encode_otlp(profile, resource)
                            : encode_otlp(without_times(profile), resource);
  if (request.size() > kMaxOtlpBytes)
    return with_hint(make_error(ErrorCode::exhausted, "a request of {} MiB, of which OTLP allows 64",
                                request.size() >> 20U),
                     otlp_cure(413));
  if (!options.is_compressed) return request;
  return gzip(request, kOtlpGzipLevel);
}

Result<Parcel> pack_for_otlp(const OtlpOptions& options, const OtlpResource& resource, const Batch& batch,
                             const Profile& profile) {
  Parcel parcel{.sequence = batch.sequence,
                .start = batch.start,
                .end = batch.end,
                .query = {},
                .content_type = "application/x-protobuf",
                .headers = {},
                .body = TRY(otlp_body(options, resource, profile))};
  if (options.is_compressed) parcel.headers.emplace_back("Content-Encoding", "gzip");
  return parcel;
}

// The tables of a request are shared by all of its profiles: each kind has a request, with tables of its own.
std::vector<Result<Parcel>> pack_kinds_for_otlp(const OtlpOptions& options, const Batch& batch) {
  const OtlpResource resource = resource_for(options, batch);
  std::vector<Result<Parcel>> parcels;
  for (const Batch::Part& part : batch.parts)
    parcels.push_back(pack_for_otlp(options, resource, batch, part.profile));
  return parcels;
}

}  // namespace

Peer otlp_peer(const OtlpOptions& options) {
  Peer peer;
  peer.place = without_query(options.url);
  peer.url = options.url;
  peer.headers = options.headers;
  peer.certificate_file = options.certificate_file;
  peer.uses_proxy = true;
  peer.pack = [options](const Batch& batch) { return pack_kinds_for_otlp(options, batch); };
  peer.may_pass = may_pass_otlp;
  peer.cure = otlp_cure;
  peer.objection = otlp_objection;
  return peer;
}

}  // namespace ddprof
