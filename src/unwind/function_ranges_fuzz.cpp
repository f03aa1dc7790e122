// Arbitrary bytes as .eh_frame_hdr and .eh_frame of an otherwise sane file: whatever is found covers what was
// asked for. The first byte chooses where one section ends and the other begins.
#include "unwind/function_ranges.hpp"

#include <cstdlib>

#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  if (size == 0) return 0;
  const std::size_t split = (size - 1) * data[0] / 255;
  CfiBytes sections[2];
  for (std::size_t i = 1; i < size; ++i) sections[i - 1 < split ? 0 : 1].u8(data[i]);
  const TestElf elf(sections[1], {}, EM_X86_64, 0x1000, 0x1000000, {}, sections[0]);
  const auto file = ElfFile::parse(elf.bytes());
  const FunctionRanges ranges(*file);
  for (std::uint64_t address = 0x1000; address < 0x1001000; address += 0x7001) {
    const auto found = ranges.find(address);
    if (found && (address < found->begin || address >= found->end)) std::abort();
  }
  const auto windows = WindowCompiler::of(*file, 0);
  RuleDictionary dictionary;
  for (std::size_t number = 0; windows && number < windows->size(); ++number) {
    const UnwindTable table = windows->compile(number, dictionary);
    if (to_int(table.find(0x1000 + number * WindowCompiler::kWindowBytes)) >= dictionary.size()) std::abort();
  }
  return 0;
}
