// Arbitrary unwinding information for two places of one piece of code: nothing outside of them has a rule.
#include <array>
#include <cstdlib>

#include "unwind/compile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  if (size < 2) return 0;
  constexpr std::uint64_t kStart = 0x10000000;
  const std::uint64_t code_bytes = 1 + data[0];
  const std::uint64_t moved_by = 0x200 + data[1] * 16U;
  const auto frames = std::as_bytes(std::span(data, size)).subspan(2);
  const std::uint64_t vaddr = kStart + (code_bytes + 7) / 8 * 8;
  const std::array<GeneratedCode, 2> places = {
      {{kStart, kStart + code_bytes, 0, vaddr, frames},
       {kStart + moved_by, kStart + moved_by + code_bytes, moved_by, vaddr, frames}}};
  RuleDictionary dictionary;
  const UnwindTable table = compile_generated_code(places, Architecture::x86_64, dictionary);
  for (std::uint64_t address = kStart - 8; address < kStart + moved_by + code_bytes + 8; ++address) {
    const std::uint64_t offset = address - kStart;
    const bool is_code = offset < code_bytes || offset - moved_by < code_bytes;
    const RuleIndex rule = table.find(address);
    if (to_int(rule) >= dictionary.size() || (!is_code && rule != RuleIndex::gap)) std::abort();
  }
  return 0;
}
