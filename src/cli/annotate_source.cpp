#include "cli/annotation.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.hpp"
#include "base/result.hpp"

namespace ddprof {

namespace {

struct SourceText {
  std::string path;  // the file that was read
  std::vector<std::string> lines;
};

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

// The source file that a profile calls `path`. With a folder, it is looked for there first: as the whole path
// below it, then without its first parts ("/build/src/a.cc": DIR/build/src/a.cc, DIR/src/a.cc, DIR/a.cc).
Result<SourceText> read_source(const std::string& path, const std::string& folder) {
  for (const std::string& candidate : source_candidates(path, folder)) {
    if (!is_readable_file(candidate)) continue;
    return SourceText{candidate, split_lines(TRY(read_file(candidate, kMaxSourceBytes)))};
  }
  Error error = make_error(ErrorCode::not_found, "the source is not here: {}", path);
  return with_hint(std::move(error), "--source-dir DIR says where it is");
}

constexpr std::int64_t kLinesAround = 2;  // in front of and behind what was sampled
constexpr std::size_t kMaxFiles = 4;

struct FileSums {
  std::int64_t start_line = 0;  // of the function; 0: unknown
  std::map<std::int64_t, StackSum> lines;

  [[nodiscard]] std::int64_t size() const {
    std::int64_t sum = 0;
    for (const auto& [line, values] : lines) sum = saturating_add(sum, size_of_value(values.total));
    return sum;
  }
};

using SumsByFile = std::map<StringIndex, FileSums>;

// Sums for the lines of one function. All else is number 0, so that a leaf in another function belongs to
// none self.
SumsByFile sum_lines(const ReportView& view, std::uint32_t frame) {
  std::map<std::pair<StringIndex, std::int64_t>, std::uint32_t> index;
  SumsByFile files;
  LocationIds ids;
  for (std::uint32_t at = 0; at < view.profile.locations.size(); ++at) {
    const std::vector<ProfileLine>& lines = view.profile.locations[at].lines;
    for (std::size_t number = 0; number < lines.size(); ++number) {
      const ProfileFunction& function = view.profile.functions[lines[number].function];
      const bool is_known =
          view.frames.frames(at)[number] == frame && function.file != 0 && lines[number].line > 0;
      if (is_known) files[function.file].start_line = function.start_line;
      const auto next = static_cast<std::uint32_t>(index.size() + 1);
      ids.add(is_known ? index.emplace(std::pair(function.file, lines[number].line), next).first->second : 0);
    }
    if (lines.empty()) ids.add(0);
    ids.end_location();
  }
  const auto sums = sum_stacks(view.profile, view.selected.samples, ids, index.size() + 1, view.column);
  for (const auto& [place, id] : index) {
    if (sums[id].self != 0 || sums[id].total != 0) files[place.first].lines[place.second] = sums[id];
  }
  std::erase_if(files, [](const auto& entry) { return entry.second.lines.empty(); });
  return files;
}

// The lines without their text, for sources that are not here.
void list_numbers(Listing& listing, const FileSums& sums) {
  for (const auto& [line, values] : sums.lines)
    listing.rows.push_back({.number = static_cast<std::uint64_t>(line), .sum = values});
}

void list_text(Listing& listing, const FileSums& sums, const SourceText& source) {
  const auto size = static_cast<std::int64_t>(source.lines.size());
  const std::int64_t first_hit = sums.lines.begin()->first, last_hit = sums.lines.rbegin()->first;
  if (last_hit > size) listing.note = "the source is shorter than the profile says: not the same version?";
  const bool is_start_known = sums.start_line > 0 && sums.start_line < first_hit;
  const std::int64_t first =
      is_start_known ? sums.start_line : std::max<std::int64_t>(1, first_hit - kLinesAround);
  const std::int64_t last = std::min(size, last_hit < size ? last_hit + kLinesAround : last_hit);
  for (std::int64_t line = first; line <= last; ++line) {
    ListingRow row{.number = static_cast<std::uint64_t>(line),
                   .text = source.lines[static_cast<std::size_t>(line - 1)]};
    if (const auto found = sums.lines.find(line); found != sums.lines.end()) row.sum = found->second;
    listing.rows.push_back(std::move(row));
  }
  // What is behind the end of the file still counts.
  for (auto hit = sums.lines.upper_bound(last); hit != sums.lines.end(); ++hit)
    listing.rows.push_back({.number = static_cast<std::uint64_t>(hit->first), .sum = hit->second});
}

Listing list_file(const std::string& path, const FileSums& sums, const std::string& source_dir) {
  Listing listing{.title = path};
  auto source = read_source(path, source_dir);
  if (source) {
    listing.title = source->path;
    list_text(listing, sums, *source);
  } else {
    const Error& error = source.error();
    listing.problem = error.hint.empty() ? error.message : fmt::format("{}; {}", error.message, error.hint);
    list_numbers(listing, sums);
  }
  keep_hot_rows(listing.rows);
  return listing;
}

}  // namespace

std::vector<Listing> annotate_source(const ReportView& view, std::uint32_t frame,
                                     const std::string& source_dir) {
  const SumsByFile files = sum_lines(view, frame);
  std::vector<SumsByFile::const_iterator> order;
  for (auto file = files.begin(); file != files.end(); ++file) order.push_back(file);
  std::stable_sort(order.begin(), order.end(), [](const auto& left, const auto& right) {
    return left->second.size() > right->second.size();
  });
  if (order.size() > kMaxFiles) order.resize(kMaxFiles);
  std::vector<Listing> listings;
  for (const auto& file : order)
    listings.push_back(list_file(view.profile.strings[file->first], file->second, source_dir));
  return listings;
}

}  // namespace ddprof
