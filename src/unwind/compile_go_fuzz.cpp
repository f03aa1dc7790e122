// Arbitrary bytes behind the header of a Go function table that points into them.
#include <cstdlib>

#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  if (size < 2) return 0;
  constexpr std::uint64_t kHeaderBytes = 72;
  CfiBytes table;
  table.u32(data[0] % 2 == 0 ? 0xfffffff0 : 0xfffffff1).u16(0).u8(1).u8(8);
  table.u64(data[1])
      .u64(0)
      .u64(0x1000)
      .u64(0)
      .u64(0)
      .u64(0)
      .u64(kHeaderBytes)
      .u64(kHeaderBytes + data[0] / 2);
  for (std::size_t i = 2; i < size; ++i) table.u8(data[i]);
  const TestElf elf({}, {}, EM_X86_64, 0x1000, 0x1000000, table);
  RuleDictionary dictionary;
  const UnwindTable unwind = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary);
  // Sequences may be shared, so they are bounded by the size of the table and not by their own.
  if (unwind.row_count() > 2 * table.size() + 512) std::abort();
  const std::uint64_t step = (unwind.end() - unwind.base()) / 200 + 1;
  for (std::uint64_t address = unwind.base(); address < unwind.end(); address += step) {
    if (to_int(unwind.find(address)) >= dictionary.size()) std::abort();
  }
  return 0;
}
