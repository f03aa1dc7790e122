#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace ddprof {

// Hand-assembles CFI for tests and benchmarks: values in the order in which the format has them.
class CfiBytes {
 public:
  CfiBytes() = default;
  CfiBytes(std::initializer_list<unsigned> bytes) {
    for (const unsigned byte : bytes) u8(byte);
  }

  CfiBytes& u8(unsigned value) {
    bytes_.push_back(static_cast<std::byte>(value));
    return *this;
  }
  CfiBytes& u16(std::uint16_t value) { return little_endian(value); }
  CfiBytes& u32(std::uint32_t value) { return little_endian(value); }
  CfiBytes& u64(std::uint64_t value) { return little_endian(value); }
  CfiBytes& uleb(std::uint64_t value) {
    do {
      const auto low = static_cast<unsigned>(value & 0x7f);
      value >>= 7;
      u8(low | (value != 0 ? 0x80U : 0U));
    } while (value != 0);
    return *this;
  }
  CfiBytes& sleb(std::int64_t value) {
    for (;;) {
      const auto low = static_cast<unsigned>(value & 0x7f);
      value >>= 7;
      const bool is_last = (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0);
      u8(low | (is_last ? 0U : 0x80U));
      if (is_last) return *this;
    }
  }
  CfiBytes& text(std::string_view value) {
    for (const char letter : value) u8(static_cast<unsigned char>(letter));
    return u8(0);
  }
  CfiBytes& append(const CfiBytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  // An expression or other block: its length, then itself.
  CfiBytes& block(const CfiBytes& other) { return uleb(other.size()).append(other); }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename T>
  CfiBytes& little_endian(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) u8(static_cast<unsigned>(value >> (8 * i)) & 0xffU);
    return *this;
  }

  std::vector<std::byte> bytes_;
};

// An .eh_frame whose pointers are absolute 64-bit addresses, unless `augmentation` says otherwise.
class EhFrame {
 public:
  struct CieOptions {
    std::string_view augmentation = "zR";
    CfiBytes augmentation_data = {0x00};  // DW_EH_PE_absptr
    unsigned version = 1;
    std::uint64_t code_alignment = 1;
    std::int64_t data_alignment = -8;
    std::uint64_t return_register = 16;
    CfiBytes instructions = {0x0c, 7, 8, 0x90, 1};  // CFA = rsp + 8, return address at CFA - 8
  };

  // Returns the offset by which FDEs name the CIE.
  std::size_t add_cie(const CieOptions& options) {
    CfiBytes body;
    body.u32(0).u8(options.version).text(options.augmentation);
    if (options.version == 4) body.u8(8).u8(0);
    body.uleb(options.code_alignment).sleb(options.data_alignment).uleb(options.return_register);
    if (!options.augmentation.empty()) body.block(options.augmentation_data);
    body.append(options.instructions);
    const std::size_t offset = data_.size();
    data_.u32(static_cast<std::uint32_t>(body.size())).append(body);
    return offset;
  }

  void add_fde(std::size_t cie, std::uint64_t begin, std::uint64_t size, const CfiBytes& instructions) {
    add_fde_with_pointers(cie, CfiBytes().u64(begin).u64(size), instructions);
  }
  // For other pointer encodings: the bytes of begin and size.
  void add_fde_with_pointers(std::size_t cie, const CfiBytes& pointers, const CfiBytes& instructions) {
    CfiBytes body;
    body.u32(static_cast<std::uint32_t>(data_.size() + 4 - cie))
        .append(pointers)
        .uleb(0)
        .append(instructions);
    data_.u32(static_cast<std::uint32_t>(body.size())).append(body);
  }
  // Where the begin pointer of the next FDE will be, for pc-relative ones.
  [[nodiscard]] std::size_t next_pointer_offset() const { return data_.size() + 8; }

  CfiBytes& data() { return data_; }
  [[nodiscard]] const CfiBytes& data() const { return data_; }

 private:
  CfiBytes data_;
};

// A minimal ELF image: one executable segment, .eh_frame_hdr as another and, as sections, .eh_frame,
// .debug_frame and .gopclntab.
class TestElf {
 public:
  static constexpr std::uint64_t kEhFrameAddress = 0x100000;
  static constexpr std::uint64_t kHeaderAddress = 0xf0000;

  TestElf(const CfiBytes& eh_frame, const CfiBytes& debug_frame, std::uint16_t machine = EM_X86_64,
          std::uint64_t code_begin = 0x1000, std::uint64_t code_size = 0x80000000,
          const CfiBytes& go_table = {}, const CfiBytes& eh_frame_hdr = {}) {
    if (machine == EM_386)
      build<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>(ELFCLASS32, eh_frame, debug_frame, machine, code_begin,
                                                code_size, go_table, eh_frame_hdr);
    else
      build<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>(ELFCLASS64, eh_frame, debug_frame, machine, code_begin,
                                                code_size, go_table, eh_frame_hdr);
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return image_; }

 private:
  template <typename Header, typename Segment, typename Section>
  void build(unsigned char elf_class, const CfiBytes& eh_frame, const CfiBytes& debug_frame,
             std::uint16_t machine, std::uint64_t code_begin, std::uint64_t code_size,
             const CfiBytes& go_table, const CfiBytes& eh_frame_hdr) {
    constexpr char names[] = "\0.eh_frame\0.debug_frame\0.names\0.gopclntab";
    const std::size_t hdr_at = sizeof(Header) + 2 * sizeof(Segment);
    const std::size_t eh_at = hdr_at + eh_frame_hdr.size();
    const std::size_t debug_at = eh_at + eh_frame.size();
    const std::size_t go_at = debug_at + debug_frame.size();
    const std::size_t names_at = go_at + go_table.size();
    const std::size_t sections_at = names_at + sizeof names;
    using Size = decltype(Section::sh_size);
    Header header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_shoff = static_cast<Size>(sections_at);
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Segment);
    header.e_phnum = 2;
    header.e_shentsize = sizeof(Section);
    header.e_shnum = 5;
    header.e_shstrndx = 3;
    Segment segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_vaddr = static_cast<Size>(code_begin);
    segment.p_memsz = static_cast<Size>(code_size);
    add(&header, sizeof header);
    add(&segment, sizeof segment);
    segment = {};
    segment.p_type = PT_GNU_EH_FRAME;
    segment.p_offset = static_cast<Size>(hdr_at);
    segment.p_vaddr = kHeaderAddress;
    segment.p_filesz = static_cast<Size>(eh_frame_hdr.size());
    add(&segment, sizeof segment);
    add(eh_frame_hdr.bytes().data(), eh_frame_hdr.size());
    add(eh_frame.bytes().data(), eh_frame.size());
    add(debug_frame.bytes().data(), debug_frame.size());
    add(go_table.bytes().data(), go_table.size());
    add(names, sizeof names);
    add_section<Section>(0, SHT_NULL, 0, 0, 0, 0);
    add_section<Section>(1, SHT_PROGBITS, SHF_ALLOC, kEhFrameAddress, eh_at, eh_frame.size());
    add_section<Section>(11, SHT_PROGBITS, 0, 0, debug_at, debug_frame.size());
    add_section<Section>(24, SHT_STRTAB, 0, 0, names_at, sizeof names);
    add_section<Section>(31, SHT_PROGBITS, SHF_ALLOC, 0x200000, go_at, go_table.size());
  }
  void add(const void* data, std::size_t size) {
    if (size == 0) return;
    const auto* first = static_cast<const std::byte*>(data);
    image_.insert(image_.end(), first, first + size);
  }
  template <typename Section>
  void add_section(std::uint32_t name, std::uint32_t type, std::uint64_t flags, std::uint64_t address,
                   std::size_t offset, std::size_t size) {
    using Size = decltype(Section::sh_size);
    Section section{};
    section.sh_name = name;
    section.sh_type = type;
    section.sh_flags = static_cast<Size>(flags);
    section.sh_addr = static_cast<Size>(address);
    section.sh_offset = static_cast<Size>(offset);
    section.sh_size = static_cast<Size>(size);
    add(&section, sizeof section);
  }

  std::vector<std::byte> image_;
};

}  // namespace ddprof
