#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "cli/commands.hpp"
#include "cli/option_parser.hpp"
#include "cli/profiling_request.hpp"
#include "runtime/control.hpp"
#include "runtime/privileges.hpp"
#include "runtime/program.hpp"
#include "runtime/standard_streams.hpp"

int main(int count, char** arguments) {
  using namespace ddprof;
  fill_closed_standard_streams();
  if (auto own = refuse_borrowed_identity(); !own) {
    say_error(own.error());
    return kExitNotExecutable;
  }
  auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  auto read = [](const std::string& path) { return read_file(path); };
  const auto words = std::span<char* const>(arguments, static_cast<std::size_t>(count)).subspan(1);
  const std::vector<const char*> readable(words.begin(), words.end());
  auto options = parse_options(readable, environment, read);
  hide_secret_arguments(words);
  if (options && !options->controlled.empty()) Control::leave_program();
  if (options) return run_command(*options);
  Error error = std::move(options).error();
  const auto unprofiled = unprofiled_options(readable, environment, read);
  if (unprofiled) error.message.insert(0, "running without profiling: ");
  say_error(error);
  return unprofiled ? run_command(*unprofiled) : kExitUsage;
}
