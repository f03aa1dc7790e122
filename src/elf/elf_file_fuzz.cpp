// Arbitrary bytes as an ELF image: every question that can be asked of one.
#include <algorithm>

#include "elf/debug_links.hpp"
#include "elf/elf_file.hpp"
#include "elf/thread_symbol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto file = ElfFile::parse({reinterpret_cast<const std::byte*>(data), size});
  if (!file) return 0;
  constexpr std::size_t max_bytes = std::size_t{1} << 20;  // what is within bounds must also be quick here
  std::uint64_t sum = file->build_id().bytes().size();
  if (const auto link = find_debug_link(*file)) sum += link->name.size() + link->checksum;
  if (const auto link = find_supplementary_link(*file))
    sum += link->path.size() + link->build_id.hex().size();
  sum += supplementary_id(*file).bytes().size();
  sum += unpack_mini_debug_info(*file, max_bytes).value_or({}).size();
  sum += file->find_debug_section(".debug_info").value_or(ElfSection{}).data.size();
  for (const SymbolTableKind kind : {SymbolTableKind::symtab, SymbolTableKind::dynsym}) {
    file->for_each_symbol(kind,
                          [&sum](const ElfSymbol& symbol) { sum += symbol.name.size() + symbol.value; });
  }
  for (const char* name : {"otel_thread_ctx_v1", "errno", ""}) {
    if (const auto symbol = find_thread_symbol(*file, name)) sum += symbol->offset + symbol->slots.size();
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(file->section_count(), 64); ++i) {
    const auto section = file->section(i);
    if (!section) continue;
    for (const std::byte byte : section->data.first(std::min<std::size_t>(section->data.size(), 16)))
      sum += std::to_integer<unsigned>(byte);
    sum += file->uncompressed(*section, max_bytes).value_or({}).size();
    sum += file->data_at(section->vaddr).size();
    sum += file->vaddr_of_offset(section->offset).value_or(0);
    sum += file->offset_of_vaddr(section->vaddr).value_or(0);
  }
  for (const auto& range : {file->find_eh_frame(), file->find_eh_frame_hdr()}) {
    if (!range) continue;
    for (const std::byte byte : range->data) sum += std::to_integer<unsigned>(byte);
  }
  volatile std::uint64_t sink = sum;  // keeps the reads
  static_cast<void>(sink);
  return 0;
}
