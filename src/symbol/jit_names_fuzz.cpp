#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbol/jit_names.hpp"
#include "symbol/kernel_symbols.hpp"

// Both text tables: any answer covers its address.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const JitNames map = JitNames::parse(text);
  const KernelSymbols kernel = KernelSymbols::parse(text);
  for (std::uint64_t address = 0; address < 0x4000; address += 0x10) {
    const auto symbol = map.find(address);
    if (symbol && (address < symbol->start || address - symbol->start >= symbol->size)) std::abort();
    const auto function = kernel.find(address | 0xffffffff81000000U);
    if (function && (function->name.empty() || function->start > (address | 0xffffffff81000000U)))
      std::abort();
  }
  return 0;
}
