#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/user_rights.hpp"

namespace ddprof {

// With whose rights a process opens files, and what it calls itself.
struct ProcessUser {
  UserRights rights;
  std::int32_t inner_pid = 0;  // in its own PID namespace
};

// From the bytes of /proc/PID/status.
[[nodiscard]] std::optional<ProcessUser> parse_process_user(std::string_view status);
// None: the process is gone.
[[nodiscard]] std::optional<ProcessUser> read_process_user(Pid pid);

// Its user alone, at a tenth of the cost: by the owner of /proc/PID. A process that may not be dumped shows
// root there, so that answer is not believed.
[[nodiscard]] std::optional<std::uint32_t> find_user_of(Pid pid);

// The rights with which to open a path that a file names: as the one who wrote the file. None: ours.
// `owner` is the file's only writer; none: others could write it too. `process` is who uses it; none: gone.
[[nodiscard]] std::optional<UserRights> rights_of_writer(std::optional<std::uint32_t> owner,
                                                         const std::optional<UserRights>& process);

}  // namespace ddprof
