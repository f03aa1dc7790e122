#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/elf_file.hpp"
#include "symbol/dwarf/debug_info.hpp"
#include "symbol/dwarf/dwarf_constants.hpp"

namespace ddprof {

// Writes DWARF by hand.
class DwarfBytes {
 public:
  template <typename T>
  DwarfBytes& put(T value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  DwarfBytes& u8(std::uint64_t value) { return put(static_cast<std::uint8_t>(value)); }
  DwarfBytes& u16(std::uint64_t value) { return put(static_cast<std::uint16_t>(value)); }
  DwarfBytes& u32(std::uint64_t value) { return put(static_cast<std::uint32_t>(value)); }
  DwarfBytes& u64(std::uint64_t value) { return put(value); }
  DwarfBytes& uleb(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) u8(value | 0x80U);
    return u8(value);
  }
  DwarfBytes& text(std::string_view value) {
    for (const char letter : value) put(letter);
    return u8(0);
  }
  DwarfBytes& list(std::initializer_list<unsigned> values) {
    for (const unsigned value : values) u8(value);
    return *this;
  }
  DwarfBytes& bytes(const DwarfBytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  // The bytes with their 32-bit length in front.
  [[nodiscard]] DwarfBytes with_length() const { return DwarfBytes().u32(size()).bytes(*this); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] const std::vector<std::byte>& get() const { return bytes_; }

  // An abbreviation: attributes and forms in turn.
  template <typename... Pairs>
  DwarfBytes& abbreviation(unsigned code, DwarfTag tag, bool has_children, Pairs... pairs) {
    uleb(code).uleb(static_cast<std::uint16_t>(tag)).u8(has_children ? 1 : 0);
    (uleb(static_cast<std::uint64_t>(pairs)), ...);
    return u8(0).u8(0);
  }
  // A unit of version 4 around the entries, whose offsets begin at 11.
  static DwarfBytes unit_4(const DwarfBytes& entries) {
    return DwarfBytes().u16(4).u32(0).u8(8).bytes(entries).with_length();
  }
  // A full unit of version 5, whose entries begin at 12.
  static DwarfBytes unit_5(const DwarfBytes& entries) {
    return DwarfBytes().u16(5).u8(1).u8(8).u32(0).bytes(entries).with_length();
  }

 private:
  std::vector<std::byte> bytes_;
};

// An ELF image of debug sections, with code at [kBegin, kEnd).
class DwarfImage {
 public:
  static constexpr std::uint64_t kBegin = 0x1000;
  static constexpr std::uint64_t kEnd = 0x3000;

  DwarfImage() { add_header(".text", {}, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, kBegin, kEnd - kBegin); }
  DwarfImage& section(const std::string& name, const DwarfBytes& bytes) {
    add_header(name, bytes.get(), SHT_PROGBITS, 0, 0, bytes.size());
    return *this;
  }
  // The image lives as long as this.
  ElfFile file() {
    add_header(".shstrtab", {}, SHT_STRTAB, 0, 0, 0);
    headers_.back().sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    headers_.back().sh_size = names_.size();
    const auto* names = reinterpret_cast<const std::byte*>(names_.data());
    body_.insert(body_.end(), names, names + names_.size());
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_shoff = sizeof header + body_.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers_.size() - 1);
    append(&header, sizeof header);
    append(body_.data(), body_.size());
    append(headers_.data(), headers_.size() * sizeof(Elf64_Shdr));
    return std::move(ElfFile::parse(image_)).value();
  }
  [[nodiscard]] const std::vector<std::byte>& image() const { return image_; }

 private:
  void add_header(const std::string& name, const std::vector<std::byte>& bytes, std::uint32_t type,
                  std::uint64_t flags, std::uint64_t address, std::uint64_t size) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names_.size());
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_addr = address;
    header.sh_offset = sizeof(Elf64_Ehdr) + body_.size();
    header.sh_size = size;
    headers_.push_back(header);
    names_ += name + '\0';
    body_.insert(body_.end(), bytes.begin(), bytes.end());
  }
  void append(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    image_.insert(image_.end(), bytes, bytes + size);
  }

  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> headers_ = {Elf64_Shdr{}};
  std::vector<std::byte> body_;
  std::vector<std::byte> image_;
};

// Hands out what a test put in, and remembers what it was asked for.
class GivenDebugFiles : public DebugFileSource {
 public:
  const ElfFile* supplementary(std::string_view path, const BuildId& build_id) override {
    asked = std::string(path) + " " + build_id.hex();
    return supplementary_file;
  }
  const ElfFile* split_unit(std::string_view directory, std::string_view name) override {
    asked = std::string(directory) + " " + std::string(name);
    return split_file;
  }
  const ElfFile* package() override { return package_file; }

  const ElfFile* supplementary_file = nullptr;
  const ElfFile* split_file = nullptr;
  const ElfFile* package_file = nullptr;
  std::string asked;
};

}  // namespace ddprof
