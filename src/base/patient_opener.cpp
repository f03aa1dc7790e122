#include "base/patient_opener.hpp"

#include <algorithm>
#include <optional>

#include "base/call_within.hpp"
#include "base/mounts.hpp"
#include "base/read_file.hpp"

namespace ddprof {

namespace {

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

PatientOpener::HungPlace place_now(const FileRequest& request) {
  return place_of(request, read_file(request.mounts).value_or({}));
}

}  // namespace

std::size_t PatientOpener::hung_calls_of(std::uint32_t user) const {
  return static_cast<std::size_t>(
      std::count_if(hung_places_.begin(), hung_places_.end(),
                    [user](const HungPlace& place) { return place.user == user; }));
}

bool PatientOpener::is_left_alone(const HungPlace& place, std::string_view path) const {
  if (hung_places_.size() >= kMaxHungCalls) return true;
  if (place.user != 0 && hung_calls_of(place.user) >= kMaxHungCallsOfUser) return true;
  return std::any_of(hung_places_.begin(), hung_places_.end(), [&](const HungPlace& hung) {
    return hung.user == place.user && is_within(path, hung.path);
  });
}

Result<ForeignFile> PatientOpener::open(const FileRequest& request) {
  const std::string path = request.root + request.path;
  std::optional<HungPlace> place;  // costs a mount table: only when something has hung
  if (!hung_places_.empty()) place = place_now(request);
  if (place && is_left_alone(*place, path))
    return make_error(ErrorCode::exhausted, "open {}: its file system hung before", path);
  const auto patience = patience_ / (1U << std::min<std::size_t>(place ? hung_calls_of(place->user) : 0, 6));
  auto opened = call_within(patience, [open = open_, request] { return open(request); });
  if (opened) return std::move(*opened);
  hung_places_.push_back(place ? *place : place_now(request));
  return make_error(ErrorCode::exhausted, "open {}: its file system hangs, {} is left alone from now on",
                    path, hung_places_.back().path);
}

PatientOpener::HungPlace place_of(const FileRequest& request, std::string_view mountinfo) {
  // Not /proc hangs, but where the link leads.
  if (request.links == FileRequest::Links::of_kernel) return {request.path, request.user};
  const auto mount = find_mount(request.path, mountinfo);
  const std::string_view path = request.path;
  const std::string_view point = mount ? mount->point : path.substr(0, path.rfind('/') + 1);
  const std::uint32_t server = mount ? mount->server.value_or(0) : 0;
  return {request.root + std::string(point), server != 0 ? server : request.user};
}

}  // namespace ddprof
