#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ddprof {

// What people set for elfutils' client holds for us too (debuginfod-client-config(7)). A limit of 0 means
// none there, and a large one here.
struct DebuginfodSettings {
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;
  static constexpr std::chrono::seconds kMaxTime = std::chrono::minutes(30);

  std::vector<std::string> urls;  // of servers, in the order in which they are asked
  std::string cache_folder;
  std::chrono::seconds timeout{90};  // for the first 100 KiB, and for each further
  std::chrono::seconds max_time = kMaxTime;
  std::uint64_t max_bytes = kMaxBytes;
};

using Environment = std::function<const char*(const char*)>;

// None unless DEBUGINFOD_URLS names servers and there is a place for what they send. The files in
// /etc/debuginfod are for login shells, which put them into the variable: as elfutils' client, we ask no
// server whom the environment does not name. Build ids tell what runs here.
std::optional<DebuginfodSettings> debuginfod_settings(const Environment& environment = ::getenv);

}  // namespace ddprof
