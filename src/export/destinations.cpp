#include "export/destinations.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/call_within.hpp"
#include "base/file_name.hpp"
#include "base/output_file.hpp"
#include "base/private_folder.hpp"
#include "export/destination.hpp"
#include "export/file_destination.hpp"
#include "export/peers.hpp"
#include "export/upload_destination.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

namespace {

std::string name_of_target(const DestinationOptions& options, Pid target) {
  if (!options.target_name.empty()) return options.target_name;
  const std::string known = read_process_name(target);
  return known.empty() ? "process" : known;
}

// Where profiles go by default.
Result<std::string> state_directory(const DestinationOptions& options) {
  if (options.state_folder.empty()) {
    return with_hint(
        make_error(ErrorCode::not_found,
                   "no place for profiles: none of XDG_STATE_HOME, STATE_DIRECTORY and HOME is set"),
        "--output FILE");
  }
  if (auto folder = PrivateFolder::open(options.state_folder); !folder)
    return with_hint(std::move(folder).error(), "--output FILE");
  return options.state_folder;
}

template <typename Kind>
Result<std::unique_ptr<Destination>> own(Result<Kind> destination) {
  if (!destination) return std::move(destination).error();
  return std::unique_ptr<Destination>(std::make_unique<Kind>(std::move(destination).value()));
}

// By name alone: the options' owner has put it there.
bool is_directory(const std::string& path) { return path.ends_with('/'); }

std::string absolute_path(const DestinationOptions& options, const std::string& path) {
  return path.starts_with('/') ? path : options.working_directory + "/" + path;
}

// With its parents, for this user alone. Those that are there stay as they are.
Result<void> make_folder(const std::string& path) {
  const auto made = call_within(PrivateFolder::kOpenPatience, [path]() -> Result<void> {
    TRY(OutputFolder::open(path, MissingFolders::make));
    return {};
  });
  if (made && made->ok()) return {};
  Error error = made ? made->error() : does_not_answer("open " + path);
  if (!error.hint.empty()) return error;
  return with_hint(std::move(error), "choose another place with --output");
}

// "20261116T065102Z-4711-9f3c21": of one process by its PID, of all by the name of the machine.
std::string run_name(const DestinationOptions& options, Pid target, const RunStamp& stamp) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string who = options.global ? safe_file_name(host.data()) : fmt::to_string(to_int(target));
  return fmt::format("{}-{}-{}", stamp.time, who, stamp.random);
}

enum class FilePlace : std::uint8_t { debug_prefix, output };

Result<std::unique_ptr<Destination>> make_file_destination(FilePlace place, const DestinationOptions& options,
                                                           const std::string& name, Pid target,
                                                           const RunStamp& stamp, const Voice& voice) {
  const std::string file_name = safe_file_name(name);
  const auto folder_of = [&](const std::string& beginning) {
    const bool has_service = !options.service.empty() && (!options.global || options.is_given("service"));
    return own(ProfileFolder::create({.prefix = beginning + "-" + run_name(options, target, stamp),
                                      .service = has_service ? options.service : name,
                                      .pid = to_int(target)},
                                     {}, voice));
  };
  if (place == FilePlace::debug_prefix) return folder_of(absolute_path(options, options.debug_pprof_prefix));
  std::string output = absolute_path(options, options.output);
  if (!options.output.empty() && is_directory(output)) {
    while (output.size() > 1 && output.ends_with('/')) output.pop_back();
    TRY(make_folder(output));
    return folder_of(output + "/" + file_name);
  }
  if (!options.output.empty()) return own(FileDestination::create(std::move(output), voice.on_written));
  if (options.is_recording)
    return own(FileDestination::create_new(
        fmt::format("{}/ddprof-{}-{}", options.working_directory, file_name, to_int(target)),
        voice.on_written));
  return folder_of(TRY(state_directory(options)) + "/" + file_name);
}

// Both when both were named.
std::vector<FilePlace> file_places(const DestinationOptions& options) {
  std::vector<FilePlace> places;
  const bool has_prefix = !options.debug_pprof_prefix.empty();
  if (has_prefix) places.push_back(FilePlace::debug_prefix);
  const bool has_nowhere_else = !has_prefix && (options.is_recording || !has_peers(options));
  if (!options.output.empty() || has_nowhere_else) places.push_back(FilePlace::output);
  return places;
}

// A folder of its own for each peer: "http_localhost_8126-1a2b3c4d". Keys are not part of it: what waits
// because of a wrong one goes with the right one.
std::string folder_name(const Peer& peer) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (char c : peer.place + '\n' + peer.url + '\n' + peer.socket)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{}-{:08x}", safe_file_name(peer.place), hash);
}

Result<std::string> spool_folder(const DestinationOptions& options) {
  if (options.spool_dir.empty()) return TRY(state_directory(options)) + "/spool";
  return absolute_path(options, options.spool_dir);
}

Result<Spool> open_spool(const DestinationOptions& options, const Peer& peer) {
  const std::string folder = TRY(spool_folder(options));
  Spool spool = TRY(Spool::open(folder + "/" + folder_name(peer),
                                {.bytes = static_cast<std::uint64_t>(options.spool_mib) << 20U,
                                 .age = std::chrono::hours(options.spool_hours)}));
  spool.drop_outdated_beside();
  return spool;
}

std::unique_ptr<Destination> make_upload(Peer peer, const DestinationOptions& options, const Voice& voice,
                                         std::size_t peers) {
  // Never so long that profiles pile up: what is left of the period is for names and files.
  const std::chrono::milliseconds period = std::chrono::seconds(options.upload_period_seconds);
  UploadOptions upload;
  upload.patience = std::min(UploadOptions::kUsualPatience, period * 3 / 4 / static_cast<int>(peers));
  upload.voice = voice;
  if (peer.certificate_file.empty() && !options.ca_file.empty())
    peer.certificate_file = absolute_path(options, options.ca_file);
  if (options.spool_dir != "none") {
    auto spool = open_spool(options, peer);
    if (spool) {
      upload.spool = std::move(spool).value();
    } else {
      voice.say(with_hint(std::move(spool).error(),
                          "--spool-dir DIR; until then, what cannot be delivered is lost"));
    }
  }
  return std::make_unique<UploadDestination>(std::move(peer), std::move(upload));
}

}  // namespace

bool is_stored_here(const DestinationOptions& options) {
  return options.output.empty() && options.debug_pprof_prefix.empty() && !options.is_recording &&
         !has_peers(options);
}

std::string stored_notice(const DestinationOptions& options, Pid target, const RunStamp& stamp) {
  const std::string& folder = options.state_folder;
  if (!is_stored_here(options) || folder.empty()) return {};
  return fmt::format("no agent: profiles are kept in {0}; ddprof report {0}/{1}-{2}-000000.pb.gz", folder,
                     safe_file_name(name_of_target(options, target)), run_name(options, target, stamp));
}

bool is_periodic(const DestinationOptions& options) {
  if (has_peers(options)) return true;
  if (!options.debug_pprof_prefix.empty()) return true;
  if (options.output.empty()) return !options.is_recording;
  return is_directory(options.output);
}

Result<void> check_output(const DestinationOptions& options) {
  const bool has_prefix = !options.debug_pprof_prefix.empty();
  if (has_prefix) TRY(check_writable(absolute_path(options, options.debug_pprof_prefix) + ".pb.gz"));
  const std::string output = absolute_path(options, options.output);
  if (options.output.empty()) {
    if (options.is_recording && !has_prefix) TRY(check_writable(options.working_directory + "/ddprof.pb.gz"));
    if (is_stored_here(options)) TRY(state_directory(options));
  } else if (is_directory(output)) {
    TRY(make_folder(output));
    TRY(check_writable(output + "/profile.pb.gz"));
  } else if (auto file = FileDestination::create(output); !file) {
    return std::move(file).error();
  }
  return {};
}

Result<void> check_spool(const DestinationOptions& options) {
  if (!has_peers(options) || options.spool_dir == "none") return {};
  const std::string folder = TRY(spool_folder(options));
  TRY(PrivateFolder::open(folder));
  return {};
}

Result<std::unique_ptr<Destination>> make_destination(const DestinationOptions& options, Pid target,
                                                      const RunStamp& stamp, const Voice& voice) {
  const std::string name = name_of_target(options, target);
  std::vector<std::unique_ptr<Destination>> destinations;
  for (const FilePlace place : file_places(options))
    destinations.push_back(TRY(make_file_destination(place, options, name, target, stamp, voice)));
  std::vector<Peer> peers = chosen_peers(options, name, target, voice.say_notice);
  for (Peer& peer : peers) destinations.push_back(make_upload(std::move(peer), options, voice, peers.size()));
  if (destinations.size() == 1) return std::move(destinations.front());
  return std::unique_ptr<Destination>(std::make_unique<SeveralDestinations>(std::move(destinations)));
}

}  // namespace ddprof
