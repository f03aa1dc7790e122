#pragma once

#include <cstdint>
#include <string>

#include "base/build_id.hpp"
#include "base/ids.hpp"

namespace ddprof {

// What is known of a mapped file from a perf record or /proc/PID/maps: enough to open it and to tell whether
// what was opened is the same file.
struct FileIdentity {
  std::string path;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;  // 0: unknown (the record carried a build id instead)
  BuildId build_id{};       // empty: unknown
};

// A file as one process has mapped it: `pid` names the mount namespace, the range the mapping (for deleted
// files).
struct MappedFile {
  Pid pid{};
  Address start{}, end{};
  FileIdentity identity{};
};

}  // namespace ddprof
