#include "session/stolen_time.hpp"

#include <unistd.h>

#include <array>
#include <sstream>
#include <string>

#include "base/read_file.hpp"

namespace ddprof {

std::int64_t parse_stolen_time(std::string_view proc_stat) {
  // "cpu  user nice system idle iowait irq softirq steal ...", in clock ticks.
  std::istringstream line{std::string(proc_stat.substr(0, proc_stat.find('\n')))};
  std::string name;
  line >> name;
  std::array<std::int64_t, 8> ticks{};
  for (std::int64_t& field : ticks) {
    if (!(line >> field)) return 0;
  }
  const auto [user, nice, system, idle, io_wait, interrupts, soft_interrupts, stolen] = ticks;
  if (name != "cpu") return 0;
  return (interrupts + soft_interrupts + stolen) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
}

std::int64_t stolen_time() {
  auto text = read_file("/proc/stat");
  return text ? parse_stolen_time(*text) : 0;
}

}  // namespace ddprof
