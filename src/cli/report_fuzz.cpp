#include <cstddef>
#include <cstdint>
#include <span>

#include "cli/report.hpp"
#include "encode/pprof.hpp"

// Whatever decodes can be reported on. Not --annotate: it reads the files that the bytes name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const DecodeLimits limits{.inflated_bytes = 1 << 20, .memory_bytes = 16 << 20};
  const Result<Profile> profile = decode_pprof(std::as_bytes(std::span(data, size)), limits);
  if (!profile.ok()) return 0;
  for (const bool json : {false, true}) {
    (void)render_report(*profile, {.width = 60, .min_path_percent = 0, .json = json});
    (void)render_report(*profile,
                        {.json = json, .filter = {.focus = {"a|m"}}, .modules = true, .lines = true});
  }
  return 0;
}
