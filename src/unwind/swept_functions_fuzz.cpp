// Arbitrary code: starts are sorted, each once, and in the code.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>

#include "unwind/swept_functions.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  constexpr std::uint64_t kBegin = 0x10000;
  const auto starts = sweep_for_functions(std::as_bytes(std::span(data, size)), kBegin, true);
  const bool ascends =
      std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
  const bool is_inside = starts.empty() || (starts.front() >= kBegin && starts.back() < kBegin + size);
  if (!ascends || !is_inside) std::abort();
  return 0;
}
