#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "encode/otlp.hpp"
#include "encode/output_format.hpp"
#include "import/import_profile.hpp"

// Whatever is recognised and read can be written in every format, and what is written is recognised.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const DecodeLimits limits{.inflated_bytes = 1 << 16, .memory_bytes = 4 << 20};
  const Result<Profile> profile = import_profile(std::as_bytes(std::span(data, size)), limits);
  if (!profile.ok()) return 0;
  std::size_t frames = 0;
  for (const ProfileSample& sample : profile->samples) {
    for (std::uint32_t location : sample.locations) frames += profile->locations[location].lines.size() + 1;
  }
  if (frames > 100'000) return 0;
  for (const OutputFormat format : {OutputFormat::pprof, OutputFormat::speedscope, OutputFormat::firefox}) {
    const Result<std::string> text = encode(*profile, format);
    if (text.ok() && !import_profile(std::as_bytes(std::span(*text))).ok()) std::abort();
  }
  (void)encode(*profile, OutputFormat::folded);
  (void)encode(*profile, OutputFormat::svg);
  const Result<std::string> otlp = encode(*profile, OutputFormat::otlp);
  if (otlp.ok() && !is_otlp(*otlp)) std::abort();
  return 0;
}
