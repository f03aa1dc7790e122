// Arbitrary code: a walk ends within its budget, gives the same answer again, and rules that a table can
// hold.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "unwind/code_walk.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  constexpr std::uint64_t kStart = 0x10000;
  CodeWalk walk;
  walk.start({kStart, bytes});
  const auto row_at = [&](std::size_t at) {
    const CodeRow row = walk.find(kStart + at);
    if (row.instructions > CodeWalk::kMaxInstructions) std::abort();
    if (row.outcome == CodeRow::Outcome::rule && row.rule.cfa == DDPROF_CFA_GAP) std::abort();
    return row;
  };
  const CodeRow first = row_at(0);
  for (std::size_t at = 1; at < bytes.size(); at += 1 + at / 8) (void)row_at(at);
  walk.start({});  // forgets
  walk.start({kStart, bytes});
  const CodeRow again = row_at(0);
  if (first.outcome != again.outcome || std::memcmp(&first.rule, &again.rule, sizeof first.rule) != 0)
    std::abort();
  return 0;
}
