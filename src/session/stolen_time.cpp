#include "session/stolen_time.hpp"

#include <unistd.h>

#include <sstream>
#include <string>

#include "base/read_file.hpp"

namespace ddprof {

std::int64_t parse_stolen_time(std::string_view proc_stat) {
  // "cpu  user nice system idle iowait irq softirq steal ...", in clock ticks.
  std::istringstream line{std::string(proc_stat.substr(0, proc_stat.find('\n')))};
  std::string name;
  std::int64_t ticks = 0;
  line >> name;
  for (int field = 0; field < 8; ++field) {
    if (!(line >> ticks)) return 0;
  }
  return name == "cpu" ? ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)) : 0;
}

std::int64_t stolen_time() {
  auto text = read_file("/proc/stat");
  return text ? parse_stolen_time(*text) : 0;
}

}  // namespace ddprof
