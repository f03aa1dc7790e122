#include "debugfile/debuginfod_settings.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ddprof {

namespace {

std::string_view text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : value;
}

// 0 when it is not set, or no number.
std::uint64_t number_of(const Environment& environment, const char* name) {
  const std::string_view text = text_of(environment, name);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\n")));
    if (text.empty()) return words;
    words.emplace_back(text.substr(0, text.find_first_of(" \t\n")));
    text.remove_prefix(words.back().size());
    while (words.back().ends_with('/')) words.back().pop_back();
  }
}

std::string cache_folder_of(const Environment& environment) {
  if (const auto path = text_of(environment, "DEBUGINFOD_CACHE_PATH"); !path.empty())
    return std::string(path);
  if (const auto path = text_of(environment, "XDG_CACHE_HOME"); !path.empty())
    return std::string(path) + "/debuginfod_client";
  if (const auto path = text_of(environment, "HOME"); !path.empty())
    return std::string(path) + "/.cache/debuginfod_client";
  return {};
}

}  // namespace

std::optional<DebuginfodSettings> debuginfod_settings(const Environment& environment) {
  DebuginfodSettings settings;
  settings.urls = words_of(text_of(environment, "DEBUGINFOD_URLS"));
  settings.cache_folder = cache_folder_of(environment);
  if (settings.urls.empty() || !settings.cache_folder.starts_with('/')) return std::nullopt;
  using std::chrono::seconds;
  const auto largest = static_cast<std::uint64_t>(DebuginfodSettings::kMaxTime.count());
  if (const auto value = number_of(environment, "DEBUGINFOD_TIMEOUT"); value != 0)
    settings.timeout = seconds(std::min(value, largest));
  if (const auto value = number_of(environment, "DEBUGINFOD_MAXTIME"); value != 0)
    settings.max_time = seconds(std::min(value, largest));
  if (const auto value = number_of(environment, "DEBUGINFOD_MAXSIZE"); value != 0)
    settings.max_bytes = std::min(value, DebuginfodSettings::kMaxBytes);
  return settings;
}

}  // namespace ddprof
