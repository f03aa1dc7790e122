#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "symbol/jit_dump.hpp"

// A file that grows: reading it in two steps and at once must come to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t first = std::min<std::size_t>(data[0] * 4U, bytes.size());
  JitDump grown;
  JitDump whole;
  bool is_good = grown.read(bytes.first(first), first).ok();
  if (is_good && grown.offset() <= bytes.size())
    is_good = grown.read(bytes.subspan(grown.offset()), bytes.size()).ok();
  if (whole.read(bytes, bytes.size()).ok() != is_good || whole.offset() != grown.offset()) std::abort();
  if (whole.size() != grown.size() || whole.memory_bytes() != grown.memory_bytes()) std::abort();
  for (std::uint64_t address = 0; address < 0x4000; address += 0x10) {
    bool is_bounded = true;
    whole.find(address, [&](const SourceCall& call) {
      is_bounded = call.name.size() <= JitDump::kMaxTextBytes && call.file.size() <= JitDump::kMaxTextBytes;
    });
    if (!is_bounded) std::abort();
  }
  std::uint64_t last_end = 0;
  whole.for_each_unwinding([&](const JitDump::Unwinding& unwinding) {
    if (unwinding.begin < last_end || unwinding.end <= unwinding.begin) std::abort();
    last_end = unwinding.end;
  });
  return 0;
}
