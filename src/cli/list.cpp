#include "cli/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/json_writer.hpp"
#include "cli/profiling_request.hpp"
#include "cli/stored_profiles.hpp"
#include "cli/terminal.hpp"
#include "encode/display_text.hpp"
#include "encode/human_value.hpp"

namespace ddprof {

namespace {

// What waits in the spool, for all destinations together.
struct Waiting {
  std::uint64_t requests = 0, bytes = 0;
};

Waiting waiting_in(const std::string& folder) {
  Waiting waiting;
  std::error_code failed;  // no such folder: nothing waits
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk files(folder + "/spool", failed); !failed && files != Walk(); files.increment(failed)) {
    if (!files->is_regular_file(failed) || files->path().extension() != ".parcel") continue;
    const std::uint64_t bytes = files->file_size(failed);
    if (failed) break;
    waiting.requests++;
    waiting.bytes += bytes;
  }
  return waiting;
}

std::string size_text(std::uint64_t bytes) { return human_value(static_cast<std::int64_t>(bytes), "bytes"); }

std::string file_name_of(const StoredProfile& one) {
  return std::filesystem::path(one.path).filename().string();
}

std::string list_json(const std::string& folder, const std::vector<StoredProfile>& stored,
                      const Waiting& waiting) {
  JsonWriter json;
  json.begin_object();
  json.member("folder", folder);
  json.key("profiles");
  json.begin_array();
  for (const StoredProfile& one : stored) {
    json.begin_object();
    json.member("file", one.path);
    json.member("service", one.service);
    json.member("time_ns", one.start.count());
    json.member("duration_ns", (one.end - one.start).count());
    if (one.cpu) json.member("cpu_ns", *one.cpu);
    json.member("bytes", static_cast<std::int64_t>(one.bytes));
    json.end_object();
  }
  json.end_array();
  json.member("waiting_requests", static_cast<std::int64_t>(waiting.requests));
  json.member("waiting_bytes", static_cast<std::int64_t>(waiting.bytes));
  json.end_object();
  return std::move(json).finish();
}

std::string list_text(const std::string& folder, const std::vector<StoredProfile>& stored,
                      const Waiting& waiting) {
  std::string text;
  std::size_t service_width = display_width("service");
  for (const StoredProfile& one : stored)
    service_width = std::max(service_width, display_width(printable(one.service)));
  const std::size_t width = terminal_width();
  constexpr std::size_t kDurationWidth = 8, kCpuWidth = 8, kSizeWidth = 9;
  service_width = std::min(service_width, width / 4);
  // A name is whole, to be copied: where it does not fit beside the rest, it has a line of its own.
  std::size_t file_width = 0;
  for (const StoredProfile& one : stored)
    file_width = std::max(file_width, display_width(printable(file_name_of(one))));
  const std::size_t rest = 23 + service_width + kDurationWidth + kCpuWidth + kSizeWidth + 5 * 2;
  const std::string before_file = rest + file_width <= width ? "  " : "\n  ";
  const auto row = [&](std::string_view time, std::string_view service, std::string_view duration,
                       std::string_view cpu, std::string_view size, std::string_view file) {
    text += left_aligned(time, 23) + "  " + left_aligned(fit(service, service_width), service_width) + "  " +
            right_aligned(duration, kDurationWidth) + "  " + right_aligned(cpu, kCpuWidth) + "  " +
            right_aligned(size, kSizeWidth) + before_file + std::string(file) + "\n";
  };
  std::uint64_t bytes = 0;
  if (!stored.empty()) row("time", "service", "duration", "CPU", "size", "file");
  for (const StoredProfile& one : stored) {
    row(human_time(one.start.count()), one.service, human_value((one.end - one.start).count(), "nanoseconds"),
        one.cpu ? human_value(*one.cpu, "nanoseconds") : "-", size_text(one.bytes),
        printable(file_name_of(one)));
    bytes += one.bytes;
  }
  text += fmt::format("{} in {}, {}\n", plural(stored.size(), "profile", "profiles"), printable(folder),
                      size_text(bytes));
  if (waiting.requests > 0)
    text += fmt::format("{} to be sent, {}\n", plural(waiting.requests, "request waits", "requests wait"),
                        size_text(waiting.bytes));
  return text;
}

Result<std::string> list_output(const Options& options) {
  const ProfileChoice choice = TRY(profile_choice(options));
  const std::string folder = options.files.empty() ? TRY(stored_folder()) : options.files.front();
  std::vector<StoredProfile> stored = TRY(profiles_in(folder));
  std::erase_if(stored, [&](const StoredProfile& one) { return !choice.has(one); });
  const Waiting waiting = waiting_in(folder);
  return options.json ? list_json(folder, stored, waiting) : list_text(folder, stored, waiting);
}

}  // namespace

int list(const Options& options) {
  const auto text = list_output(options);
  if (text) return options.json || !options.pager ? print_output(*text) : page_output(*text);
  say_error(text.error());
  return 1;
}

}  // namespace ddprof
