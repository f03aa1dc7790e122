#include "export/pyroscope_peer.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "encode/compression.hpp"
#include "encode/escaped_text.hpp"
#include "encode/pprof.hpp"
#include "encode/pyroscope_profile.hpp"
#include "net/http_text.hpp"

namespace ddprof {

namespace {

bool is_of_application(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-';
}

std::string application_name(std::string_view text) {
  std::string name(text);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_of_application(c); }, '_');
  return name.empty() ? "unknown" : name;
}

std::string label_value(std::string_view text) {
  constexpr std::string_view kSigns = "{},=\"";
  std::string value(text.substr(0, kMaxPyroscopeValue));
  std::replace_if(
      value.begin(), value.end(),
      [&](char c) { return (c >= 0 && c < ' ') || c == '\x7f' || kSigns.find(c) != std::string_view::npos; },
      '_');
  return to_utf8(value);
}

}  // namespace

std::string pyroscope_name(std::string_view application, const PyroscopeLabels& labels) {
  std::string name = application_name(application) + "{";
  std::set<std::string> known;
  for (const auto& [key, value] : labels) {
    const std::string label = pyroscope_label_name(key);
    if (value.empty() || !known.insert(label).second) continue;
    if (!name.ends_with('{')) name += ',';
    name += label;
    name += '=';
    name += label_value(value);
  }
  return name + "}";
}

namespace {

constexpr std::string_view kIngest = "/ingest";
constexpr int kPyroscopeGzipLevel = 1;  // the profiler pays for more

std::string pyroscope_hint(unsigned status) {
  if (status == 0) return "start the server, or name it: --pyroscope-url, PYROSCOPE_SERVER_ADDRESS";
  if (status >= 300 && status < 400) return "name the right address: --pyroscope-url";
  switch (status) {
    case 401:
    case 403:
      return "name who you are there: PYROSCOPE_BASIC_AUTH_USER and PYROSCOPE_BASIC_AUTH_PASSWORD, or "
             "--pyroscope-tenant";
    case 404:
    case 405:
      return "is it a Pyroscope server? Its address is the one of its own pages: http://host:4040";
    case 400:
    case 413:
    case 422:
      // Its usual limits; ours do not matter, since a server's owner can change them.
      return "it takes 16000 stacks and 4 MiB in a profile, 30 labels, and nothing older than an hour: raise "
             "its limits, or try a shorter --upload-period";
    default:
      return "look at the server's log";
  }
}

bool may_pass_pyroscope(unsigned status) { return status == 408 || status == 429 || status >= 500; }

Result<UploadRequest> pack_for_pyroscope(const std::string& name, const Batch& batch,
                                         const Profile& profile) {
  UploadRequest request{.sequence = batch.sequence,
                        .start = batch.start,
                        .end = batch.end,
                        .query = fmt::format("name={}&from={}&until={}&spyName=ddprof&format=pprof",
                                             percent_encoded(name), batch.start.count(), batch.end.count()),
                        .content_type = "application/octet-stream",
                        .headers = {},
                        .body = {}};
  if (profile.samples.empty()) return request;
  request.body = TRY(gzip(encode_pprof(for_pyroscope(profile)), kPyroscopeGzipLevel));
  return request;
}

// Columns give a profile its name there: those of several kinds need a request each.
void pack_kinds(const std::string& name, const Batch& batch, std::vector<Result<UploadRequest>>& requests) {
  for (const Batch::Part& part : batch.parts)
    requests.push_back(pack_for_pyroscope(name, batch, part.profile));
}

// Labels of the user stay; those that tell services apart are the share's.
std::string name_of_share(const PyroscopeOptions& options, const ProcessIdentity& identity) {
  if (identity.service.empty()) return pyroscope_name(options.application, options.labels);
  PyroscopeLabels labels = {{"container_id", identity.container_id}, {"version", identity.version}};
  if (!identity.environment.empty()) labels.emplace_back("env", identity.environment);
  for (const auto& label : options.labels)
    if (label.first != "version") labels.push_back(label);  // the first of a name counts
  return pyroscope_name(identity.service, labels);
}

std::vector<Result<UploadRequest>> pack_shares_for_pyroscope(const PyroscopeOptions& options,
                                                             const Batch& batch) {
  std::vector<Result<UploadRequest>> requests;
  if (!options.shares) {
    pack_kinds(pyroscope_name(options.application, options.labels), batch, requests);
  } else {
    options.shares->cut(batch, [&](const Share& share) {
      pack_kinds(name_of_share(options, share.identity), share.batch, requests);
    });
  }
  return requests;
}

}  // namespace

Peer pyroscope_peer(const PyroscopeOptions& options) {
  Peer peer;
  peer.url = options.url + std::string(kIngest);
  peer.place = peer.url;
  if (!options.user.empty() || !options.password.empty())
    peer.headers.emplace_back("Authorization", basic_auth(options.user, options.password));
  if (!options.tenant.empty()) peer.headers.emplace_back("X-Scope-OrgID", options.tenant);
  peer.uses_proxy = true;
  peer.pack = [options](const Batch& batch) { return pack_shares_for_pyroscope(options, batch); };
  peer.may_pass = may_pass_pyroscope;
  peer.hint = pyroscope_hint;
  return peer;
}

}  // namespace ddprof
