// Arbitrary bytes as .eh_frame and .debug_frame of an otherwise sane file, for all architectures. The first
// byte chooses where one section ends and the other begins.
#include <cstdlib>

#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  if (size == 0) return 0;
  const std::size_t split = (size - 1) * data[0] / 255;
  CfiBytes sections[2];
  for (std::size_t i = 1; i < size; ++i) sections[i - 1 < split ? 0 : 1].u8(data[i]);
  for (const std::uint16_t machine : {EM_X86_64, EM_AARCH64, EM_386}) {
    const TestElf elf(sections[0], sections[1], machine, 0x1000, 0x1000000);
    RuleDictionary dictionary;
    const UnwindTable table = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary);
    // Rows come from instructions, so that their number is bounded by the size of the sections.
    if (table.row_count() > 2 * size) std::abort();
    const std::uint64_t step = (table.end() - table.base()) / 200 + 1;
    for (std::uint64_t address = table.base(); address < table.end(); address += step) {
      if (to_int(table.find(address)) >= dictionary.size()) std::abort();
    }
  }
  return 0;
}
