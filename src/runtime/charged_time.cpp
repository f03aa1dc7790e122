#include "runtime/charged_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/read_file.hpp"

namespace ddprof {

std::optional<std::int64_t> ChargedTime::read() const {
  auto text = read_file(fmt::format("/proc/{}/stat", to_int(pid_)));
  if (!text) return std::nullopt;
  // The name may hold spaces and parentheses: fields are counted from the last one. utime is the 12th behind
  // it.
  std::size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 2));
  std::string skipped;
  for (int field = 0; field < 11; ++field) fields >> skipped;
  std::int64_t user = 0;
  std::int64_t system = 0;
  std::int64_t children_user = 0;
  std::int64_t children_system = 0;
  if (!(fields >> user >> system >> children_user >> children_system)) return std::nullopt;
  return (user + system + children_user + children_system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

std::int64_t ChargedTime::at(std::int64_t counted) {
  // A process that is being reaped right now has a file that says 0.
  if (auto charged = read(); charged && *charged - before_ >= last_charged_) {
    last_charged_ = *charged - before_;
    last_counted_ = counted;
    return last_charged_;
  }
  // Gone: what was counted since was charged in the same proportion.
  if (last_counted_ <= 0 || last_charged_ <= 0) return counted;
  double ratio = static_cast<double>(last_charged_) / static_cast<double>(last_counted_);
  return last_charged_ + static_cast<std::int64_t>(
                             static_cast<double>(std::max<std::int64_t>(0, counted - last_counted_)) * ratio);
}

}  // namespace ddprof
