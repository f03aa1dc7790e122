// Arbitrary bytes behind the header of a Go function table whose parts lie anywhere in them.
#include <cstdlib>

#include "symbol/go_lines.hpp"
#include "symbol/go_program_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  constexpr std::size_t kNumbers = 8;
  if (size < kNumbers) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + kNumbers, size - kNumbers);
  const auto place = [&](std::size_t number) { return GoProgramBytes::kHeaderBytes + data[number]; };
  const GoProgramBytes program(data[0] % 2 == 0 ? GoProgramBytes::kGo118 : GoProgramBytes::kGo120, data[1],
                               {place(2), place(3), place(4), place(5), place(6)}, body,
                               body.substr(std::min<std::size_t>(data[7], body.size())));
  const auto file = ElfFile::parse(program.bytes());
  if (!file) std::abort();
  const auto lines = GoLines::find(*file);
  if (!lines) return 0;
  for (std::uint64_t offset = 0; offset < 0x400; offset += 7) {
    lines->find(GoProgramBytes::kCode + offset, [](std::span<const SourceCall> calls) {
      if (calls.empty() || calls.back().name.empty()) std::abort();
    });
  }
  return 0;
}
