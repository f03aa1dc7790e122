#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/addresses.hpp"
#include "export/datadog_body.hpp"

namespace ddprof {

// Where profiles go and whose they are, as the user said it. The option table fills it in (cli/options.hpp).
struct DestinationOptions {
  // Identity
  std::string service;  // empty with -p: the name of the process
  std::string environment;
  std::string service_version;
  std::string tags;
  std::string runtime_id;
  bool global = false;           // the whole host, not one program
  std::string target_name = {};  // empty: as the process is called
  bool samples_kernel = false;   // known once the events are open

  // Files
  std::string output;              // empty: the command's own default name; a folder ends with a slash
  std::string debug_pprof_prefix;  // also write each period's profile as PREFIX….pprof
  bool is_recording = false;       // one file for the whole run, where no other place is named
  std::string working_directory = {};
  std::string state_folder = {};  // where profiles and requests go that have no other place; empty: none

  // Upload
  std::string url;
  std::string host = "localhost";
  std::int64_t port = 8126;
  std::string api_key;
  bool agentless = false;
  std::string site = std::string(kUsualSite);
  IntakeFormat intake_format = IntakeFormat::version_4;
  std::string otlp_endpoint;
  std::string otlp_profiles_endpoint;  // the whole address; stronger than the other
  std::string otlp_headers;
  std::string otlp_protocol = "http/protobuf", otlp_compression = "gzip", otlp_certificate;
  std::string pyroscope_url;
  std::string pyroscope_user, pyroscope_password, pyroscope_tenant;
  std::string ca_file;
  std::string spool_dir;  // empty: in the user's state directory
  std::int64_t spool_mib = 100;
  std::int64_t spool_hours = 24;
  bool do_export = true;
  bool split_services = true;
  bool remote_symbolization = false;
  std::int64_t upload_period_seconds = 59;

  std::vector<std::string_view> given = {};  // names of options that the user has set; others are defaults
  [[nodiscard]] bool is_given(std::string_view name) const {
    return std::find(given.begin(), given.end(), name) != given.end();
  }
};

}  // namespace ddprof
