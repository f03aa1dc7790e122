#include "cli/source_text.hpp"

#include <filesystem>
#include <string_view>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;

std::vector<std::string> source_candidates(std::string_view path, const std::string& folder) {
  std::vector<std::string> candidates;
  if (!folder.empty()) {
    for (std::string_view rest = path; !rest.empty();) {
      while (rest.starts_with('/')) rest.remove_prefix(1);
      if (!rest.empty()) candidates.push_back(folder + "/" + std::string(rest));
      const std::size_t slash = rest.find('/');
      rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
    }
  }
  candidates.emplace_back(path);
  return candidates;
}

// Only plain files: a profile is free to name a pipe or a device.
bool is_readable_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Result<SourceText> read_source(const std::string& path, const std::string& folder) {
  for (const std::string& candidate : source_candidates(path, folder)) {
    if (!is_readable_file(candidate)) continue;
    return SourceText{candidate, split_lines(TRY(read_file(candidate, kMaxSourceBytes)))};
  }
  Error error = make_error(ErrorCode::not_found, "the source is not here: {}", path);
  return with_hint(std::move(error), "--source-dir DIR says where it is");
}

}  // namespace ddprof
