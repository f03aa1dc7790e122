#include "unwind/eh_frame_table.hpp"

#include <algorithm>

#include "elf/byte_cursor.hpp"
#include "unwind/cfi_reader.hpp"

namespace ddprof {

namespace {

// Of .eh_frame_hdr (LSB core, "DWARF exception header encoding"): signed, 4 bytes, relative to the header.
// Every linker writes its table so.
constexpr std::uint8_t kTableEncoding = 0x3b;

}  // namespace

EhFrameTable::EhFrameTable(const ElfFile& file) {
  const auto header = file.find_eh_frame_hdr();
  if (!header) return;
  const CfiSection section{.data = header->data, .vaddr = header->vaddr, .data_base = header->vaddr};
  ByteCursor cursor(header->data);
  const std::uint8_t version = cursor.u8();
  const std::uint8_t eh_frame_encoding = cursor.u8();
  const std::uint8_t count_encoding = cursor.u8();
  const std::uint8_t table_encoding = cursor.u8();
  if (version != 1 || table_encoding != kTableEncoding) return;
  static_cast<void>(read_encoded_pointer(section, eh_frame_encoding, cursor));
  const std::uint64_t count = read_encoded_pointer(section, count_encoding, cursor);
  base_ = header->vaddr;
  entries_ = cursor.take(std::min(count, cursor.left() / sizeof(Entry)) * sizeof(Entry));
}

EhFrameTable::Entry EhFrameTable::entry(std::size_t index) const {
  return load<Entry>(entries_, index * sizeof(Entry)).value_or(Entry{});
}

}  // namespace ddprof
