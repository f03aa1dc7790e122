#include "debugfile/debug_file_finder.hpp"

#include <elf.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace ddprof {

Result<DebugImage> open_debug_image(PatientOpener& opener, const FileRequest& request) {
  ForeignFile opened = TRY(opener.open(request));
  MappedRegion region = TRY(map_foreign_file(opened));
  auto file = ElfFile::parse(region.bytes());
  if (!file)
    return make_error(file.error().code, "read {}{}: {}", request.root, request.path, file.error().message);
  return DebugImage{request.root, request.path,      opened.device,   opened.inode,
                    opened.owner, std::move(region), std::move(*file)};
}

bool has_debug_info(const ElfFile& file) {
  const auto section = file.find_debug_section(".debug_info");
  return section && !section->data.empty();
}

bool has_symbol_table(const ElfFile& file) {
  const auto section = file.find_section(".symtab");
  return section && section->type == SHT_SYMTAB && !section->data.empty();
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string base_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

namespace {

constexpr std::string_view kDebugFolder = "/usr/lib/debug";
// A checksum reads the whole file. Files without build ids are old, and not larger.
constexpr std::size_t kMaxChecksummedBytes = std::size_t{1} << 30;

// What there is of the file decides how well it serves.
bool is_complete(const std::optional<DebugImage>& image) { return image && has_debug_info(image->file); }
bool is_useful(const DebugImage& image) { return has_debug_info(image.file) || has_symbol_table(image.file); }

// Empty when the file is what the link leads to; otherwise what is wrong.
std::string mismatch(const DebugImage& image, const BuildId& build_id, const DebugLink& link) {
  const BuildId its_id = image.file.build_id();
  if (!its_id.empty() && !build_id.empty()) return its_id == build_id ? "" : "belongs to another build";
  if (image.region.size() > kMaxChecksummedBytes) return "has no build id, and is too large for a checksum";
  return debug_link_checksum(image.region.bytes()) == link.checksum ? "" : "has another checksum";
}

std::string build_id_path(const BuildId& build_id) {
  const std::string hex = build_id.hex();
  return fmt::format("{}/.build-id/{}/{}.debug", kDebugFolder, hex.substr(0, 2), hex.substr(2));
}

// A path that a file names, or that lies beside it.
FileRequest named_by(const Binary& from, std::string path) {
  FileRequest request{.path = std::move(path), .root = from.root, .rights = from.rights};
  request.user = from.rights ? from.rights->user : 0;
  return request;
}

bool is_believed(const DebugImage& image, const Binary& from) {
  if (!image.owner) return false;
  if (*image.owner == 0 || *image.owner == ::geteuid()) return true;
  return from.owner ? image.owner == from.owner : from.rights && *image.owner == from.rights->user;
}

}  // namespace

void DebugFileFinder::add_by_build_id(Candidates& candidates, const Binary& binary,
                                      const BuildId& build_id) const {
  if (build_id.bytes().size() < 2) return;
  const std::string path = build_id_path(build_id);
  candidates.push_back(named_by(binary, path));
  // Folders of the system, which hold what root put there.
  if (binary.root != places_.own_root || binary.rights)
    candidates.push_back({.path = path, .root = places_.own_root});
  if (!places_.debuginfod_cache.empty())
    candidates.push_back({.path = places_.debuginfod_cache + "/" + build_id.hex() + "/debuginfo"});
}

std::optional<DebugImage> DebugFileFinder::open(const Binary& from, const FileRequest& candidate,
                                                Problems& problems) {
  auto image = open_debug_image(opener_, candidate);
  if (image && is_believed(*image, from)) return std::move(*image);
  if (image) {
    problems.push_back(
        fmt::format("debug file {} refused: it is not of the owner of {}", image->place(), from.path));
    return std::nullopt;
  }
  // What is not there is normal. The cache of debuginfod keeps empty files for what no server has.
  const bool is_normal = image.error().code == ErrorCode::not_found ||
                         image.error().code == ErrorCode::permission_denied ||
                         (image.error().code == ErrorCode::corrupt && !places_.debuginfod_cache.empty() &&
                          candidate.path.starts_with(places_.debuginfod_cache));
  if (!is_normal) problems.push_back(image.error().message);
  return std::nullopt;
}

std::optional<DebugImage> DebugFileFinder::find_by_build_id(const Binary& from, const Candidates& candidates,
                                                            const BuildId& build_id, Problems& problems) {
  std::optional<DebugImage> best;
  for (const FileRequest& candidate : candidates) {
    auto image = open(from, candidate, problems);
    if (!image) continue;
    if (supplementary_id(image->file) != build_id) {
      problems.push_back(fmt::format("debug file {} belongs to another build", image->place()));
    } else if (is_useful(*image) && !best) {
      best = std::move(image);
    } else if (is_complete(image) && !is_complete(best)) {
      best = std::move(image);
    }
    if (is_complete(best)) break;
  }
  return best;
}

std::optional<DebugImage> DebugFileFinder::find_linked(const Binary& binary, Problems& problems) {
  const auto link = binary.file != nullptr ? find_debug_link(*binary.file) : std::nullopt;
  if (!link) return std::nullopt;
  const std::string name(link->name);
  if (name.find('/') != std::string::npos) {
    problems.push_back(fmt::format("debug link of {} refused: {} is not a plain name", binary.path, name));
    return std::nullopt;
  }
  const auto itself = open_debug_image(opener_, named_by(binary, binary.path));
  const std::string folder = folder_of(binary.path);
  const std::array paths = {folder + "/" + name, folder + "/.debug/" + name,
                            std::string(kDebugFolder) + folder + "/" + name};
  std::optional<DebugImage> best;
  for (const std::string& path : paths) {
    auto image = open(binary, named_by(binary, path), problems);
    if (!image || (itself && image->is_same_file(*itself)) || !is_useful(*image)) continue;
    if (const std::string wrong = mismatch(*image, binary.build_id, *link); !wrong.empty()) {
      problems.push_back(fmt::format("debug file {} {}", image->place(), wrong));
      continue;
    }
    if (!best || is_complete(image)) best = std::move(image);
    if (is_complete(best)) return best;
  }
  return best;
}

std::optional<DebugImage> DebugFileFinder::find_separate(const Binary& binary, Problems& problems) {
  Candidates candidates;
  add_by_build_id(candidates, binary, binary.build_id);
  auto found = find_by_build_id(binary, candidates, binary.build_id, problems);
  if (is_complete(found)) return found;
  auto linked = find_linked(binary, problems);
  return is_complete(linked) || !found ? std::move(linked) : std::move(found);
}

std::optional<DebugImage> DebugFileFinder::find_supplementary(const Binary& from,
                                                              const SupplementaryLink& link,
                                                              Problems& problems) {
  if (link.build_id.empty()) {
    problems.push_back(fmt::format("link of {} to {} refused: it has no build id", from.path, link.path));
    return std::nullopt;
  }
  const std::string path(link.path);
  const bool is_absolute = path.starts_with('/');
  Candidates candidates;
  candidates.push_back(named_by(from, is_absolute ? path : folder_of(from.path) + "/" + path));
  candidates.push_back(named_by(from, fmt::format("{}/.dwz/{}", kDebugFolder, base_name_of(path))));
  add_by_build_id(candidates, from, link.build_id);
  return find_by_build_id(from, candidates, link.build_id, problems);
}

std::optional<DebugImage> DebugFileFinder::find_first(const Binary& from,
                                                      const std::vector<std::string>& paths,
                                                      Problems& problems) {
  for (const std::string& path : paths) {
    if (auto image = open(from, named_by(from, path), problems)) return image;
  }
  return std::nullopt;
}

}  // namespace ddprof
