#include "cli/secret_arguments.hpp"

#include <algorithm>
#include <vector>

#include "cli/command_words.hpp"

namespace ddprof {

void hide_secret_arguments(std::span<char* const> args) {
  const std::vector<const char*> readable(args.begin(), args.end());
  const auto words = split_command_words(readable);
  if (!words) return;  // a misspelled option is an error, and nothing runs on
  for (const std::string_view secret : words->secrets) {
    // They are views of the arguments, which belong to the process.
    std::fill_n(const_cast<char*>(secret.data()), secret.size(), '*');
  }
}

}  // namespace ddprof
