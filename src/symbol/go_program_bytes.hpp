#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddprof {

// Hand-made Go programs for tests: an ELF file with a table of functions, and the runtime's data of it.
class GoProgramBytes {
 public:
  static constexpr std::uint64_t kBase = 0x400000;  // where the file is loaded
  static constexpr std::uint64_t kCode = 0x1000000;
  static constexpr std::uint64_t kHeaderBytes = 72;
  static constexpr std::uint32_t kGo118 = 0xfffffff0;
  static constexpr std::uint32_t kGo120 = 0xfffffff1;

  // Where the parts of the table begin.
  struct Offsets {
    std::uint64_t names = 0, units = 0, files = 0, sequences = 0, functions = 0;
  };

  // `body` follows the header; `function_data` is what descriptions point to.
  GoProgramBytes(std::uint32_t magic, std::uint64_t count, const Offsets& offsets, std::string_view body,
                 std::string_view function_data, bool has_code_start = true) {
    const bool is_120 = magic == kGo120;
    image_.resize(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
    const std::size_t table = align();
    number(magic), number(std::uint32_t{0x08010000}), number(count), number(std::uint64_t{0});
    number(has_code_start ? kCode : 0);
    for (const std::uint64_t offset :
         {offsets.names, offsets.units, offsets.files, offsets.sequences, offsets.functions})
      number(offset);
    image_.append(body);
    const std::size_t data = align();
    image_.append(function_data);
    const std::size_t module = align();
    image_.resize(module + 400);
    set(module, kBase + table);
    set(module + 8, kBase + table + offsets.names);
    set(module + 176, kCode);
    set(module + (is_120 ? 320 : 304), kBase + data);
    add_sections(table, data, module);
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(image_)); }

 private:
  template <typename T>
  void number(T value) {
    image_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void set(std::size_t at, const T& value) {
    std::memcpy(image_.data() + at, &value, sizeof value);
  }
  std::size_t align() {
    image_.resize((image_.size() + 31) / 32 * 32);
    return image_.size();
  }

  void add_sections(std::size_t table, std::size_t data, std::size_t module) {
    using namespace std::string_view_literals;
    constexpr std::string_view names = "\0.gopclntab\0.noptrdata\0.names\0"sv;
    const std::size_t names_at = image_.size();
    image_.append(names);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_X86_64;
    header.e_phoff = header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shoff = align();
    header.e_shnum = 4;
    header.e_shstrndx = 3;
    number(Elf64_Shdr{});
    section(1, SHT_PROGBITS, table, data - table);
    section(12, SHT_PROGBITS, module, names_at - module);
    section(23, SHT_STRTAB, names_at, names.size());
    set(0, header);
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R;
    segment.p_vaddr = kBase;
    segment.p_filesz = segment.p_memsz = names_at;
    set(sizeof header, segment);
  }
  void section(std::uint32_t name, std::uint32_t type, std::size_t offset, std::size_t size) {
    Elf64_Shdr section{};
    section.sh_name = name;
    section.sh_type = type;
    section.sh_flags = type == SHT_PROGBITS ? SHF_ALLOC : 0;
    section.sh_addr = kBase + offset;
    section.sh_offset = offset;
    section.sh_size = size;
    number(section);
  }

  std::string image_;
};

}  // namespace ddprof
