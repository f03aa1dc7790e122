#include "encode/output_format.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/nearest.hpp"
#include "encode/compression.hpp"
#include "encode/otlp.hpp"
#include "encode/pprof.hpp"
#include "encode/viewer_formats.hpp"
#include "profile/profile_view.hpp"
#include "profile/timeline.hpp"

namespace ddprof {

namespace {

using NamedFormat = std::pair<std::string_view, OutputFormat>;

constexpr auto kExtensions = std::to_array<NamedFormat>({
    {".pb.gz", OutputFormat::pprof_gzip},
    {".pprof", OutputFormat::pprof_gzip},
    {".pb", OutputFormat::pprof},
    {".folded", OutputFormat::folded},
    {".collapsed", OutputFormat::folded},
    {".txt", OutputFormat::folded},
    {".speedscope.json", OutputFormat::speedscope},
    {".firefox.json", OutputFormat::firefox},
    {".firefox.json.gz", OutputFormat::firefox_gzip},
    {".otlp", OutputFormat::otlp},
    {".svg", OutputFormat::svg},
});

constexpr auto kFormatNames = std::to_array<NamedFormat>({
    {"pprof", OutputFormat::pprof_gzip},
    {"pb", OutputFormat::pprof},
    {"folded", OutputFormat::folded},
    {"speedscope", OutputFormat::speedscope},
    {"firefox", OutputFormat::firefox},
    {"otlp", OutputFormat::otlp},
    {"svg", OutputFormat::svg},
});

// Formats of text write each inlined call of each sample. A hostile pprof can share one location with a
// million calls among a million samples; honest profiles stay far below.
constexpr std::uint64_t kMaxWrittenFrames = std::uint64_t{1} << 28;
constexpr std::uint64_t kMaxWrittenLabels = std::uint64_t{1} << 28;

template <std::size_t count>
std::array<std::string_view, count> names_of(const std::array<NamedFormat, count>& formats) {
  std::array<std::string_view, count> names;
  for (std::size_t at = 0; at < count; ++at) names[at] = formats[at].first;
  return names;
}

std::string joined(std::span<const std::string_view> names, std::string_view separator = ", ") {
  std::string text;
  for (std::string_view name : names) {
    if (!text.empty()) text += separator;
    text += name;
  }
  return text;
}

// The extension that a mistyped one meant. Extensions have up to three parts, and file names dots of their
// own: the longest ending that resembles one decides.
std::string did_you_mean_extension(std::string_view path) {
  const auto known = names_of(kExtensions);
  const std::string_view name = base_name(path);
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (std::string text = did_you_mean(name.substr(dot), known); !text.empty()) return text;
  }
  if (name.ends_with(".json") || name.ends_with(".json.gz"))
    return "; did you mean .speedscope.json or .firefox.json?";
  return {};
}

Result<void> check_frame_count(const Profile& profile) {
  std::uint64_t frames = 0;
  for (const ProfileSample& sample : profile.samples) {
    std::uint64_t of_stack = 0;
    for (std::uint32_t location : sample.locations) of_stack += profile.locations[location].lines.size() + 1;
    frames += of_stack * (sample.times.size() + 1);
    if (frames > kMaxWrittenFrames) {
      return with_hint(make_error(ErrorCode::exhausted, "encode profile: more than {} frames in its stacks",
                                  kMaxWrittenFrames),
                       "pprof can hold it: choose .pb.gz");
    }
  }
  return {};
}

// OTLP repeats the labels of a sample in each column.
Result<void> check_label_count(const Profile& profile) {
  std::uint64_t labels = 0;
  for (const ProfileSample& sample : profile.samples)
    labels += sample.labels.size() + sample.times.size() + 1;
  if (labels * profile.value_types.size() <= kMaxWrittenLabels) return {};
  return with_hint(make_error(ErrorCode::exhausted, "encode profile: more than {} labels in all columns",
                              kMaxWrittenLabels),
                   "pprof can hold it: choose .pb.gz");
}

}  // namespace

Result<OutputFormat> output_format(std::string_view path) {
  for (const auto& [extension, format] : kExtensions) {
    if (path.ends_with(extension)) return format;
  }
  return with_hint(make_error(ErrorCode::invalid_argument, "output {}: the extension names no known format{}",
                              path, did_you_mean_extension(path)),
                   "known extensions: " + joined(names_of(kExtensions)));
}

Result<OutputFormat> output_format_by_name(std::string_view name) {
  for (const auto& [known, format] : kFormatNames) {
    if (name == known) return format;
  }
  const auto names = names_of(kFormatNames);
  return with_hint(make_error(ErrorCode::invalid_argument, "output format {}: not known{}", name,
                              did_you_mean(name, names)),
                   "known formats: " + joined(names));
}

std::string_view output_extensions() {
  static const std::string text = joined(names_of(kExtensions), " ");
  return text;
}

std::string_view output_format_names() {
  static const std::string text = joined(names_of(kFormatNames), " ");
  return text;
}

Result<std::string> encode(const Profile& profile, OutputFormat format) {
  if (format == OutputFormat::pprof) return encode_pprof(profile);
  if (format == OutputFormat::pprof_gzip) return gzip(encode_pprof(profile));
  if (format == OutputFormat::otlp) {
    TRY(check_label_count(profile));
    return encode_otlp(profile, {});
  }
  TRY(check_frame_count(profile));
  const bool has_times = format != OutputFormat::folded && format != OutputFormat::svg;
  if (has_times && has_timeline(profile)) return encode(with_a_sample_per_event(profile), format);
  switch (format) {
    case OutputFormat::folded:
      return encode_folded(profile);
    case OutputFormat::speedscope:
      return encode_speedscope(profile);
    case OutputFormat::firefox:
      return encode_firefox(profile);
    case OutputFormat::firefox_gzip:
      return gzip(encode_firefox(profile));
    case OutputFormat::svg:
      return encode_flamegraph_svg(profile);
    default:
      return make_error(ErrorCode::invalid_argument, "encode profile: unknown format");
  }
}

}  // namespace ddprof
