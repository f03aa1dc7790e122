#include "runtime/program.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace ddprof {

namespace {

Result<std::string> check_executable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno_error(errno, "cannot run " + path);
  if (S_ISDIR(status.st_mode))
    return make_error(ErrorCode::permission_denied, "cannot run {}: is a directory", path);
  if (::access(path.c_str(), X_OK) != 0) {
    return with_hint(errno_error(errno, "cannot run " + path), "make it executable: chmod +x " + path);
  }
  return path;
}

Error cannot_limit(const std::string& program, Error error) {
  error.message = fmt::format("cannot run {}: {}", program, error.message);
  return error;
}

// The two signals that the C library uses itself and hides from sigaction(). Its first thread puts a handler
// in the place of "ignored", which exec would turn into the default: a change that the target could see.
class HiddenSignals {
 public:
  HiddenSignals() {
    for (std::size_t i = 0; i < were_ignored_.size(); ++i) {
      KernelAction action;
      were_ignored_[i] = ::syscall(SYS_rt_sigaction, kFirst + i, nullptr, &action, sizeof action.mask) == 0 &&
                         action.handler == SIG_IGN;
    }
  }
  void restore() const {
    KernelAction ignore;
    ignore.handler = SIG_IGN;
    for (std::size_t i = 0; i < were_ignored_.size(); ++i)
      if (were_ignored_[i]) ::syscall(SYS_rt_sigaction, kFirst + i, &ignore, nullptr, sizeof ignore.mask);
  }

 private:
  static constexpr std::size_t kFirst = 32;
  struct KernelAction {
    void (*handler)(int) = nullptr;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    std::uint64_t mask = 0;
  };
  std::array<bool, 2> were_ignored_{};
};

const HiddenSignals at_start;  // before any thread

}  // namespace

Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return check_executable(name);
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/bin:/usr/bin";
  Error refused = make_error(ErrorCode::not_found, "cannot run {}: no such command in PATH", name);
  while (true) {
    std::size_t colon = path.find(':');
    std::string directory(path.substr(0, colon));
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    auto found = check_executable(candidate);
    if (found) return found;
    if (found.error().code != ErrorCode::not_found) refused = std::move(found).error();
    if (colon == std::string_view::npos) return refused;
    path.remove_prefix(colon + 1);
  }
}

int exit_status_of(const Error& error) {
  return error.code == ErrorCode::not_found ? kExitNotFound : kExitNotExecutable;
}

std::string join_environment(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& variable : variables) text.append(1, '\0').append(variable);
  return text;
}

std::vector<std::string> split_environment(std::string_view text) {
  std::vector<std::string> variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0', 1), text.size());
    variables.emplace_back(text.substr(1, end - 1));
    text.remove_prefix(end);
  }
  return variables;
}

// What was there comes behind, without ours: under another ddprof it is there already.
static std::string preloaded_before(const std::string& library, std::string_view others) {
  std::string all = library;
  while (!others.empty()) {
    const std::size_t end = std::min(others.find_first_of(" :"), others.size());
    if (const std::string_view one = others.substr(0, end); !one.empty() && one != library)
      all.append(":").append(one);
    others.remove_prefix(std::min(end + 1, others.size()));
  }
  return all;
}

void add_to_environment(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals);
    std::string value = variable.substr(equals + 1);
    const char* before = std::getenv(name.c_str());
    if (name == "LD_PRELOAD" && before != nullptr) value = preloaded_before(value, before);
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread, about to exec
  }
}

Error exec_program(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  at_start.restore();
  ::execvp(arguments[0], arguments.data());
  return errno_error(errno, "cannot run " + program[0]);
}

std::optional<int> refuse_to_run(const std::string& name, const PrivilegeLimits& limits,
                                 const std::function<void(const Error&)>& say_error) {
  if (auto found = find_program(name); !found) {
    say_error(found.error());
    return exit_status_of(found.error());
  }
  if (auto possible = check_can_limit(limits); !possible) {
    say_error(cannot_limit(name, std::move(possible).error()));
    return kExitNotExecutable;
  }
  return std::nullopt;
}

int exec_limited(const std::vector<std::string>& program, const PrivilegeLimits& limits,
                 const std::function<void(const Error&)>& say_error) {
  if (auto limited = limit_privileges(limits); !limited) {
    say_error(cannot_limit(program[0], std::move(limited).error()));
    return kExitNotExecutable;
  }
  Error error = exec_program(program);
  say_error(error);
  return exit_status_of(error);
}

}  // namespace ddprof
