#include "session/kernel_times.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
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

namespace {

std::optional<std::int64_t> time_on_cpu(std::int32_t pid, std::int32_t tid) {
  auto text = read_file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid));
  std::int64_t nanoseconds = 0;
  if (!text) return std::nullopt;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), nanoseconds);
  return error == std::errc() ? std::optional(nanoseconds) : std::nullopt;
}

}  // namespace

void ThreadTimes::start_from(Pid pid) {
  std::error_code ignored;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", to_int(pid)), ignored)) {
    std::int32_t tid = std::atoi(task.path().filename().c_str());
    if (auto time = time_on_cpu(to_int(pid), tid)) baseline_[tid] = *time;
  }
}

std::vector<CpuLedger::ThreadTotal> ThreadTimes::read(const ProcessTable& processes) {
  std::vector<CpuLedger::ThreadTotal> totals;
  processes.for_each([&](const Process& process) {
    if (process.has_ended) return;
    for (const auto& [tid, thread] : process.threads) {
      if (thread.has_ended) continue;
      if (totals.size() >= kMaxThreads) return;
      auto time = time_on_cpu(to_int(process.pid), tid);
      if (!time) continue;
      if (!knows_beginning(static_cast<Tid>(tid))) baseline_.try_emplace(tid, *time);
      auto known = baseline_.find(tid);
      std::int64_t before = known == baseline_.end() ? 0 : known->second;
      totals.push_back({{process.pid, static_cast<Tid>(tid)}, *time - before});
    }
  });
  return totals;
}

}  // namespace ddprof
