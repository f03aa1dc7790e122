#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kMaxUncompressedBytes = std::uint64_t{1} << 30;
// Deflate cannot do better than 1032:1 (zlib's technical notes): a header that claims more lies.
constexpr std::uint64_t kMaxRatio = 1032;

Result<std::vector<std::byte>> inflate_exactly(std::span<const std::byte> compressed, std::uint64_t size) {
  std::vector<std::byte> output(size);
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK)
    return make_error(ErrorCode::exhausted, "inflate section: zlib did not start");
  // zlib counts in 32 bits; the output is bounded by kMaxUncompressedBytes, the input is cut to what it can
  // use.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data()));
  stream.avail_in =
      static_cast<uInt>(std::min<std::uint64_t>(compressed.size(), std::numeric_limits<uInt>::max()));
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  const int status = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (status != Z_STREAM_END || stream.total_out != size) {
    return make_error(ErrorCode::corrupt, "inflate section: {} of {} bytes, zlib status {}", stream.total_out,
                      size, status);
  }
  return output;
}

}  // namespace

Result<std::vector<std::byte>> ElfFile::uncompressed(const ElfSection& section) const {
  if (!section.is_compressed()) return std::vector<std::byte>(section.data.begin(), section.data.end());
  const auto header = load<Elf64_Chdr>(section.data, 0);
  if (!header)
    return make_error(ErrorCode::corrupt, "inflate section {}: no compression header", section.name);
  if (header->ch_type != ELFCOMPRESS_ZLIB) {
    return make_error(ErrorCode::unsupported, "inflate section {}: compression type {} is not zlib",
                      section.name, header->ch_type);
  }
  const auto compressed = section.data.subspan(sizeof(Elf64_Chdr));
  if (header->ch_size > kMaxUncompressedBytes || header->ch_size / kMaxRatio > compressed.size()) {
    return make_error(ErrorCode::corrupt, "inflate section {}: it claims {} bytes from {}", section.name,
                      header->ch_size, compressed.size());
  }
  return inflate_exactly(compressed, header->ch_size);
}

}  // namespace ddprof
