#include "export/otlp_peer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "encode/compression.hpp"
#include "encode/escaped_text.hpp"
#include "export/addresses.hpp"
#include "net/http_text.hpp"
#include "profile/timeline.hpp"
#include "proto/otlp_fields.hpp"
#include "proto/wire_reader.hpp"

namespace ddprof {

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// A token of RFC 9110.
bool is_header_name(std::string_view name) {
  constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

}  // namespace

Result<HttpHeaders> parse_otlp_headers(std::string_view text) {
  HttpHeaders headers;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (without_blanks(pair).empty()) continue;
    const std::size_t equals = pair.find('=');
    const auto name = percent_decoded(without_blanks(pair.substr(0, equals)));
    const auto value = percent_decoded(
        equals == std::string_view::npos ? std::string_view("%") : without_blanks(pair.substr(equals + 1)));
    if (!name || !value || !is_header_name(*name) || !is_header_value(*value))
      return make_error(ErrorCode::invalid_argument,
                        "header {} is not of the form key=value, percent-encoded", number);
    headers.emplace_back(*name, *value);
  }
  return headers;
}

namespace {

struct PartialSuccess {
  std::int64_t rejected_profiles = 0;
  std::string_view message;
};

// Nothing when it is no protobuf.
std::optional<PartialSuccess> read_partial_success(std::string_view bytes) {
  PartialSuccess found;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == otlp_field::kRejectedProfiles) {
      found.rejected_profiles = static_cast<std::int64_t>(reader.varint());
    } else if (reader.field() == otlp_field::kErrorMessage) {
      found.message = reader.bytes();
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? std::nullopt : std::optional(found);
}

std::optional<PartialSuccess> read_answer(std::string_view bytes) {
  std::optional<PartialSuccess> found = PartialSuccess{};
  WireReader reader(bytes);
  while (found && reader.next()) {
    if (reader.field() == otlp_field::kPartialSuccess) {
      found = read_partial_success(reader.bytes());
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? std::nullopt : found;
}

}  // namespace

std::string otlp_objection(std::string_view answer) {
  const std::optional<PartialSuccess> success = read_answer(answer);
  // A web page, for example: what sent it need not have stored anything.
  if (!success) return "what it says is not the answer of a collector, or too long for one";
  const std::string message = to_utf8(success->message);
  if (success->rejected_profiles == 0) return message;
  return fmt::format("rejects {} of the profiles{}{}", success->rejected_profiles,
                     message.empty() ? "" : ": ", message);
}

namespace {

// Of one request, before it is compressed: the protocol's own limit for both sides.
constexpr std::size_t kMaxOtlpBytes = 64U << 20U;
constexpr int kOtlpGzipLevel = 1;  // the profiler pays for more

std::string otlp_hint(unsigned status) {
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

// An environment is usually that of the whole host; a version is that of one service.
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
                     otlp_hint(413));
  if (!options.is_compressed) return request;
  return gzip(request, kOtlpGzipLevel);
}

Result<UploadRequest> pack_for_otlp(const OtlpOptions& options, const OtlpResource& resource,
                                    const Batch& batch, const Profile& profile) {
  UploadRequest request{.sequence = batch.sequence,
                        .start = batch.start,
                        .end = batch.end,
                        .query = {},
                        .content_type = "application/x-protobuf",
                        .headers = {},
                        .body = TRY(otlp_body(options, resource, profile))};
  if (options.is_compressed) request.headers.emplace_back("Content-Encoding", "gzip");
  return request;
}

// The tables of a request are shared by all of its profiles: each kind has a request, with tables of its own.
std::vector<Result<UploadRequest>> pack_kinds_for_otlp(const OtlpOptions& options, const Batch& batch) {
  const OtlpResource resource = resource_for(options, batch);
  std::vector<Result<UploadRequest>> requests;
  for (const Batch::Part& part : batch.parts)
    requests.push_back(pack_for_otlp(options, resource, batch, part.profile));
  return requests;
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
  peer.hint = otlp_hint;
  peer.objection = otlp_objection;
  return peer;
}

}  // namespace ddprof
