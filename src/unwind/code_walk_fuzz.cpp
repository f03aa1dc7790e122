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
  CodeWalk walk({kStart, bytes});
  for (std::size_t at = 0; at < bytes.size(); at += 1 + at / 8) {
    const CodeRow row = walk.find(kStart + at);
    if (row.instructions > CodeWalk::kMaxInstructions) std::abort();
    if (row.outcome == CodeRow::Outcome::rule && row.rule.cfa == DDPROF_CFA_GAP) std::abort();
    const CodeRow fresh = CodeWalk({kStart, bytes}).find(kStart + at);
    if (fresh.outcome != row.outcome || std::memcmp(&fresh.rule, &row.rule, sizeof row.rule) != 0)
      std::abort();
  }
  return 0;
}
