#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "elf/elf_file.hpp"
#include "symbol/demangle.hpp"
#include "symbol/start_functions.hpp"
#include "symbol/symbol_table.hpp"

// Whatever the bytes are, a symbol covers the address that was asked for; they may be start functions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto file = ElfFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  std::vector<std::uint64_t> addresses = {file->entry()};
  file->for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
    addresses.insert(addresses.end(), {symbol.value, symbol.value + symbol.size});
  });
  std::sort(addresses.begin(), addresses.end());
  const std::vector<Symbol> symbols = find_symbols(*file, addresses).value_or({});
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].name.empty()) continue;
    if (addresses[i] < symbols[i].start || addresses[i] - symbols[i].start >= symbols[i].size) std::abort();
    (void)demangle(symbols[i].linker_name());
  }
  const StartFunctions starts(*file, "libc.so.6");
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{64}, ~file->entry()})
    (void)starts.name_of(*file, file->entry(), file->entry() + length);
  return 0;
}
