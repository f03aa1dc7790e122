#include "symbol/dwarf/package_index.hpp"

#include "elf/load.hpp"

namespace ddprof {

namespace {

// Numbers of the columns. Those of version 2 differ from version 5 on (DWARF 5, section 7.3.5.3) but for
// these.
enum class PackageColumn : std::uint32_t { info = 1, abbrev = 3, str_offsets = 6, rnglists = 8 };

struct PackageHeader {
  std::uint32_t version = 0;
  std::uint32_t columns = 0;
  std::uint32_t units = 0;
  std::uint32_t slots = 0;
};
constexpr std::uint64_t kPackageHeaderBytes = 16;
constexpr std::uint64_t kWorkPerSlot = 16;  // two misses of the cache

std::optional<PackageHeader> read_package_header(std::span<const std::byte> index) {
  auto header = load<PackageHeader>(index, 0);
  if (!header) return std::nullopt;
  // Version 5 has a version of two bytes and two bytes of padding.
  const std::uint32_t version = header->version & 0xffffU;
  if (header->version != 2 && version != 5) return std::nullopt;
  const bool is_power_of_2 = header->slots != 0 && (header->slots & (header->slots - 1)) == 0;
  if (!is_power_of_2 || header->slots > index.size() / 12) return std::nullopt;
  if (header->columns == 0 || header->columns > 16 || header->units > header->slots) return std::nullopt;
  header->version = version;
  return header;
}

// The row of an id in the table behind the hash table, counted from 1; 0 when it has none.
std::uint32_t find_row(std::span<const std::byte> index, const PackageHeader& header, std::uint64_t id,
                       WorkBudget& budget) {
  const std::uint32_t mask = header.slots - 1;
  std::uint64_t slot = id & mask;
  const std::uint64_t step = ((id >> 32U) & mask) | 1U;
  const std::uint64_t rows = kPackageHeaderBytes + std::uint64_t{header.slots} * 8;
  for (std::uint32_t tries = 0; tries < header.slots && budget.spend(kWorkPerSlot);
       ++tries, slot = (slot + step) & mask) {
    const std::uint32_t row = load<std::uint32_t>(index, rows + slot * 4).value_or(0);
    if (row == 0) return 0;
    if (load<std::uint64_t>(index, kPackageHeaderBytes + slot * 8) == id) return row;
  }
  return 0;
}

}  // namespace

std::optional<PackageEntry> find_in_package_index(std::span<const std::byte> index, std::uint64_t dwo_id,
                                                  WorkBudget& budget) {
  const auto header = read_package_header(index);
  if (!header) return std::nullopt;
  const std::uint32_t row = find_row(index, *header, dwo_id, budget);
  if (row == 0 || row > header->units) return std::nullopt;
  const std::uint64_t columns = kPackageHeaderBytes + std::uint64_t{header->slots} * 12;
  const std::uint64_t offsets = columns + std::uint64_t{row} * header->columns * 4;
  PackageEntry entry;
  for (std::uint64_t i = 0; i < header->columns; ++i) {
    const auto column = load<std::uint32_t>(index, columns + i * 4);
    const auto offset = load<std::uint32_t>(index, offsets + i * 4);
    if (!column || !offset) return std::nullopt;
    switch (PackageColumn{*column}) {
      case PackageColumn::info:
        entry.info = *offset;
        break;
      case PackageColumn::abbrev:
        entry.abbreviations = *offset;
        break;
      case PackageColumn::str_offsets:
        entry.str_offsets = *offset;
        break;
      case PackageColumn::rnglists:
        if (header->version == 5) entry.rnglists = *offset;
        break;
    }
  }
  return entry;
}

}  // namespace ddprof
