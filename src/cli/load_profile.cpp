#include "cli/load_profile.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/read_file.hpp"
#include "import/import_profile.hpp"

namespace ddprof {

Result<Profile> load_profile(const std::string& path) {
  constexpr std::size_t kMaxProfileBytes = std::size_t{1} << 30U;
  const std::string bytes = TRY(read_input(path, kMaxProfileBytes));
  auto profile = import_profile(std::as_bytes(std::span(bytes)));
  if (!profile) profile.error().message.insert(0, fmt::format("read {}: ", path));
  return profile;
}

}  // namespace ddprof
