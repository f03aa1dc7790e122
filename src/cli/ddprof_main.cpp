#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "cli/commands.hpp"
#include "cli/option_parser.hpp"
#include "cli/profiling_request.hpp"
#include "cli/secret_arguments.hpp"
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
  if (!options) {
    say_error(options.error());
    return kExitUsage;
  }
  return run_command(*options);
}
