#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "elf/elf_file.hpp"
#include "symbol/demangle.hpp"
#include "symbol/start_functions.hpp"
#include "symbol/symbol_table.hpp"

// Any bytes make a table whose every answer covers the address that was asked for, and may be start
// functions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto file = ElfFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  const SymbolTable table = SymbolTable::build(*file).value_or({});
  const auto check = [&](std::uint64_t address) {
    const auto symbol = table.find(address);
    if (!symbol) return;
    if (address < symbol->start || address - symbol->start >= symbol->size) std::abort();
    (void)demangle(symbol->name);
  };
  file->for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
    check(symbol.value);
    check(symbol.value + symbol.size);
  });
  check(file->entry());
  const StartFunctions starts(*file, "libc.so.6");
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{64}, ~file->entry()})
    (void)starts.name_of(*file, file->entry(), file->entry() + length);
  return 0;
}
