#include "export/datadog_peer.hpp"

#include <random>

#include "encode/datadog_profile.hpp"
#include "encode/gzip.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kInput = "/profiling/v1/input";
// Larger ones are taken, and then not looked at.
constexpr std::size_t kMaxPprofBytes = 10U << 20U;
constexpr int kFastest = 1;  // of gzip's levels: the profiler pays for the rest

std::string datadog_cure(unsigned status) {
  if (status == 0) return "start the agent, or name it: --url, DD_TRACE_AGENT_URL";
  if (status >= 300 && status < 400) return "name the right address: --url, DD_TRACE_AGENT_URL";
  switch (status) {
    case 401:
    case 403:
      return "give the agent an API key that is valid";
    case 404:
      return "a Datadog agent takes profiles from version 7.20 on; is it one? ddprof doctor";
    case 413:
      return "send smaller profiles: a shorter --upload-period, or --no-timeline";
    default:
      return "look at the agent: its log, its API key, and: ddprof doctor";
  }
}

bool may_pass_datadog(unsigned status) { return status == 408 || status == 429 || status >= 500; }

Result<std::string> pprof_of(const Profile& profile) {
  std::string pprof = TRY(gzip(encode_for_datadog(profile), kFastest));
  if (pprof.size() <= kMaxPprofBytes) return pprof;
  return with_hint(
      make_error(ErrorCode::exhausted, "a profile of {} MiB, of which Datadog takes 10", pprof.size() >> 20U),
      "send smaller profiles: a shorter --upload-period, or --no-timeline");
}

Result<Parcel> pack_for_datadog(const DatadogOptions& options, const Batch& batch) {
  const bool is_single = batch.parts.size() == 1;
  std::vector<Attachment> attachments;
  for (const Batch::Part& part : batch.parts)
    attachments.push_back({is_single ? "profile.pprof" : part.kind + ".pprof", TRY(pprof_of(part.profile))});
  std::random_device seed;
  std::mt19937_64 random((std::uint64_t{seed()} << 32U) | seed());
  MultipartForm form = datadog_body(options.identity, {batch.start, batch.end, batch.sequence},
                                    std::move(attachments), [&random] { return random(); });
  return Parcel{.sequence = batch.sequence,
                .start = batch.start,
                .end = batch.end,
                .query = {},
                .content_type = std::move(form.content_type),
                .headers = options.headers,
                .body = std::move(form.bytes)};
}

}  // namespace

Peer datadog_peer(const DatadogOptions& options) {
  Peer peer;
  peer.place = options.agent.text();
  peer.url = options.agent.url + std::string(kInput);
  peer.socket = options.agent.socket;
  peer.headers = {{"DD-EVP-ORIGIN", "ddprof"}, {"DD-EVP-ORIGIN-VERSION", DDPROF_VERSION}};
  peer.pack = [options](const Batch& batch) { return pack_for_datadog(options, batch); };
  peer.may_pass = may_pass_datadog;
  peer.cure = datadog_cure;
  return peer;
}

}  // namespace ddprof
