#include "collect/perf/thread_list.hpp"

#include <fmt/format.h>

#include "process/proc_files.hpp"

namespace ddprof {

std::vector<Tid> list_threads(Pid pid) {
  std::vector<Tid> tids;
  for (std::int32_t number : list_numbers(fmt::format("/proc/{}/task", to_int(pid))))
    tids.push_back(Tid{number});
  return tids;
}

bool is_alive(Tid tid) {
  auto task = read_process(to_int(tid));
  return task && !task->is_zombie;
}

}  // namespace ddprof
