#include "runtime/profiling.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "runtime/target_library.hpp"

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

Result<ChargedTime> ChargedTime::create(Pid pid) {
  return ChargedTime(pid, TRY(MappedRegion::map_anonymous_shared(sizeof(Reading))));
}

std::int64_t ChargedTime::at(std::int64_t counted) {
  auto& shared = *reinterpret_cast<Reading*>(last_.data());
  const Reading last = shared;
  // A process that is being reaped right now has a file that says 0.
  if (auto charged = read(); charged && *charged - before_ >= last.charged) {
    shared = {.charged = *charged - before_, .counted = counted};
    return *charged - before_;
  }
  // Gone: what was counted since was charged in the same proportion.
  if (last.counted <= 0 || last.charged <= 0) return counted;
  const double ratio = static_cast<double>(last.charged) / static_cast<double>(last.counted);
  const auto since = static_cast<double>(std::max<std::int64_t>(0, counted - last.counted));
  return last.charged + static_cast<std::int64_t>(since * ratio);
}

namespace {

Result<void> set_affinity(const std::string& mask) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  std::size_t bit = 0;
  std::string_view digits = mask;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, bit += 4) {
    const char text[] = {*digit, '\0'};
    char* end = nullptr;
    unsigned long value = std::strtoul(text, &end, 16);
    if (end == text)
      return make_error(ErrorCode::invalid_argument, "--cpu-affinity {}: not a hexadecimal mask", mask);
    for (unsigned i = 0; i < 4; ++i) {
      if ((value >> i & 1U) != 0 && bit + i < CPU_SETSIZE) CPU_SET(bit + i, &cpus);
    }
  }
  if (::sched_setaffinity(0, sizeof cpus, &cpus) != 0) return errno_error(errno, "--cpu-affinity " + mask);
  return {};
}

// Without capabilities the kernel shows us processes of our own user, with no more rights than we have.
Result<void> check_may_look_at(Pid pid) {
  UniqueFd maps(::open(fmt::format("/proc/{}/maps", to_int(pid)).c_str(), O_RDONLY | O_CLOEXEC));
  if (maps.is_open() || errno == ENOENT) return {};
  return with_hint(errno_error(errno, fmt::format("--drop-caps: look at process {}", to_int(pid))),
                   "run ddprof as the user of the process, or without --drop-caps");
}

// The addresses of /proc/kallsyms are zeros for who may not see them; one of the first hundred tells.
bool may_name_kernel_functions() {
  std::ifstream file("/proc/kallsyms");
  std::string line;
  for (int count = 0; count < 100 && std::getline(file, line); ++count) {
    if (line.substr(0, line.find(' ')).find_first_not_of('0') != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Result<void> apply_limits(const ProfilingRequest& request) {
  if (request.nice && ::setpriority(PRIO_PROCESS, 0, *request.nice) != 0) {
    return errno_error(errno, fmt::format("--nice {}", *request.nice));
  }
  if (!request.cpu_affinity.empty()) return set_affinity(request.cpu_affinity);
  return {};
}

Result<PreparedProfiling> prepare(const Target& target, const ProfilingRequest& request) {
  PreparedProfiling prepared;
  EngineOptions collecting = request.collecting;
  if (request.has_library) collecting.library = TRY(provide_library());
  prepared.collector = TRY(request.engine->open(target, collecting));
  if (request.collecting.has_pauses && prepared.collector->pausable() == nullptr)
    return make_error(ErrorCode::unsupported, "--cpu-duration: this engine has no pauses");
  if (target.is_about_to_exec())
    prepared.charged = std::make_shared<ChargedTime>(TRY(ChargedTime::create(target.root())));
  // All that needs rights is open. Without capabilities only its own user may look at the target; whether
  // that user can write profiles is seen here and not after the first period.
  if (request.privileges.drops_capabilities) {
    TRY(limit_privileges(request.privileges));
    if (target.kind == Target::Kind::running)
      for (const Pid pid : prepared.collector->scope().processes) TRY(check_may_look_at(pid));
  }
  prepared.destination =
      TRY(request.make_destination(target.root(), prepared.collector->scope().samples_kernel()));
  return prepared;
}

SessionOptions session_options(const PreparedProfiling& prepared, const Target& target,
                               const ProfilingRequest& request) {
  SessionOptions options = request.session;
  options.events = request.collecting.events;
  if (request.privileges.drops_capabilities && prepared.collector->scope().samples_kernel() &&
      !may_name_kernel_functions())
    options.notices.emplace_back(
        "kernel functions have no names: those need CAP_SYSLOG, which --drop-caps gave up, or "
        "kernel.perf_event_paranoid <= 1 with kernel.kptr_restrict 0");
  options.target = target;
  // A process that is not the target's parent reads /proc.
  if (!options.charged_cpu.ask && prepared.charged) {
    options.charged_cpu.ask = [charged = prepared.charged](std::int64_t counted, bool) {
      return charged->at(counted);
    };
  }
  return options;
}

}  // namespace ddprof
