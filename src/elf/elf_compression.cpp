#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"

namespace ddprof {

namespace {

// binutils writes it since 2.40; glibc 2.36's elf.h does not know it yet.
constexpr std::uint32_t kZstd = 2;
// A header that claims more than its compression could do lies. Deflate does at best 1032:1 (zlib's technical
// notes); Zstandard spends at least a header of 3 bytes and 1 byte of content on a block of at most 128 KiB
// (RFC 8878, 3.1.1.2).
constexpr std::uint64_t kMaxZlibRatio = 1032;
constexpr std::uint64_t kMaxZstdRatio = (128U << 10U) / 4;

struct Packed {
  std::span<const std::byte> bytes;
  std::uint64_t size = 0;  // claimed, when unpacked
  bool is_zstd = false;
};

Result<void> inflate_into(std::span<const std::byte> packed, std::span<std::byte> output) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK)
    return make_error(ErrorCode::exhausted, "inflate section: zlib did not start");
  // zlib counts in 32 bits; the output is bounded to fit, the input is cut to what it can use.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in =
      static_cast<uInt>(std::min<std::uint64_t>(packed.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  const int status = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (status == Z_STREAM_END && stream.total_out == output.size()) return {};
  return make_error(ErrorCode::corrupt, "inflate section: {} of {} bytes, zlib status {}", stream.total_out,
                    output.size(), status);
}

Result<void> unpack_zstd_into(std::span<const std::byte> packed, std::span<std::byte> output) {
  const std::size_t size = ZSTD_decompress(output.data(), output.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0)
    return make_error(ErrorCode::corrupt, "unpack section: {}", ZSTD_getErrorName(size));
  if (size == output.size()) return {};
  return make_error(ErrorCode::corrupt, "unpack section: {} of {} bytes", size, output.size());
}

bool is_old_gnu_form(const ElfSection& section) { return section.name.starts_with(".zdebug"); }

Result<Packed> packed_of(const ElfSection& section) {
  if (is_old_gnu_form(section)) {
    const auto magic = load<std::uint32_t>(section.data, 0);
    const auto size = load<std::uint64_t>(section.data, 4);
    if (!size || *magic != 0x42494c5a)  // "ZLIB", then the size with its high byte first
      return make_error(ErrorCode::corrupt, "inflate section {}: it does not start with ZLIB", section.name);
    return Packed{section.data.subspan(12), __builtin_bswap64(*size), false};
  }
  const auto header = load<Elf64_Chdr>(section.data, 0);
  if (!header)
    return make_error(ErrorCode::corrupt, "inflate section {}: no compression header", section.name);
  if (header->ch_type != ELFCOMPRESS_ZLIB && header->ch_type != kZstd) {
    return make_error(ErrorCode::unsupported, "inflate section {}: compression type {} is not known",
                      section.name, header->ch_type);
  }
  return Packed{section.data.subspan(sizeof *header), header->ch_size, header->ch_type == kZstd};
}

}  // namespace

Result<std::vector<std::byte>> ElfFile::uncompressed(const ElfSection& section,
                                                     std::uint64_t max_bytes) const {
  if (!section.is_compressed() && !is_old_gnu_form(section))
    return std::vector<std::byte>(section.data.begin(), section.data.end());
  const Packed packed = TRY(packed_of(section));
  const std::uint64_t ratio = packed.is_zstd ? kMaxZstdRatio : kMaxZlibRatio;
  if (packed.size / ratio > packed.bytes.size()) {
    return make_error(ErrorCode::corrupt, "inflate section {}: it claims {} bytes from {}", section.name,
                      packed.size, packed.bytes.size());
  }
  if (packed.size > std::min<std::uint64_t>(max_bytes, std::numeric_limits<std::uint32_t>::max())) {
    return make_error(ErrorCode::exhausted,
                      "inflate section {}: its {} bytes are more than the {} that may be held", section.name,
                      packed.size, max_bytes);
  }
  std::vector<std::byte> output(packed.size);
  TRY(packed.is_zstd ? unpack_zstd_into(packed.bytes, output) : inflate_into(packed.bytes, output));
  return output;
}

std::optional<ElfSection> ElfFile::find_debug_section(std::string_view name) const {
  std::optional<ElfSection> old_form;
  for (std::size_t i = 1; i < section_count_; ++i) {
    auto candidate = section(i);
    if (!candidate) continue;
    if (candidate->name == name) return candidate;
    // .zdebug_info for .debug_info
    if (!old_form && is_old_gnu_form(*candidate) && name.starts_with(".debug") &&
        candidate->name.substr(2) == name.substr(1))
      old_form = candidate;
  }
  return old_form;
}

}  // namespace ddprof
