#include "elf/debug_links.hpp"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

struct DebugSup {
  bool is_supplementary = false;  // this is the file that links lead to
  std::string_view path;
  BuildId id;
};

// DWARF 5, 7.3.6: version, whether this is the supplementary file itself, the path to that, the length of its
// checksum (dwz: its build id) as LEB128, the checksum.
std::optional<DebugSup> read_debug_sup(const ElfFile& file) {
  const auto section = file.find_section(".debug_sup");
  if (!section || load<std::uint16_t>(section->data, 0) != 5) return std::nullopt;
  const auto is_supplementary = load<std::uint8_t>(section->data, 2);
  const std::string_view path = load_string(section->data, 3);
  const std::uint64_t length_at = 3 + path.size() + 1;
  const auto length = load<std::uint8_t>(section->data, length_at);
  // More than 127 bytes, a length of two bytes, is no build id.
  if (!is_supplementary || !length || *length > 127) return std::nullopt;
  const auto id = slice_of(section->data, length_at + 1, *length);
  if (id.size() != *length) return std::nullopt;  // it is cut
  return DebugSup{*is_supplementary != 0, path, BuildId(id)};
}

}  // namespace

std::optional<DebugLink> find_debug_link(const ElfFile& file) {
  const auto section = file.find_section(".gnu_debuglink");
  if (!section) return std::nullopt;
  const std::string_view name = load_string(section->data, 0);
  const std::uint64_t checksum_at = (name.size() + 1 + 3) & ~std::uint64_t{3};
  const auto checksum = load<std::uint32_t>(section->data, checksum_at);
  if (name.empty() || !checksum) return std::nullopt;
  return DebugLink{name, *checksum};
}

std::optional<SupplementaryLink> find_supplementary_link(const ElfFile& file) {
  if (const auto section = file.find_section(".gnu_debugaltlink")) {
    const std::string_view path = load_string(section->data, 0);
    if (path.empty()) return std::nullopt;
    return SupplementaryLink{path, BuildId(section->data.subspan(path.size() + 1))};
  }
  const auto sup = read_debug_sup(file);
  if (!sup || sup->is_supplementary || sup->path.empty()) return std::nullopt;
  return SupplementaryLink{sup->path, sup->id};
}

BuildId supplementary_id(const ElfFile& file) {
  BuildId id = file.build_id();
  if (!id.empty()) return id;
  const auto sup = read_debug_sup(file);
  return sup && sup->is_supplementary ? sup->id : BuildId();
}

std::uint32_t debug_link_checksum(std::span<const std::byte> file) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size()));
}

namespace {

// Of the decoder itself, as files are usually packed: a dictionary of 8 MiB.
constexpr std::uint64_t kUsualDecoderBytes = std::uint64_t{10} << 20;
constexpr std::size_t kFirstStep = std::size_t{64} << 10;

class XzDecoder {
 public:
  explicit XzDecoder(std::uint64_t max_bytes) : status_(::lzma_stream_decoder(&stream_, max_bytes, 0)) {}
  ~XzDecoder() { ::lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  Result<std::vector<std::byte>> unpack(std::span<const std::byte> packed, std::uint64_t max_bytes);

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  lzma_ret status_;
};

Result<std::vector<std::byte>> XzDecoder::unpack(std::span<const std::byte> packed, std::uint64_t max_bytes) {
  stream_.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream_.avail_in = packed.size();
  std::vector<std::byte> output;
  std::size_t used = 0;
  while (status_ == LZMA_OK) {
    if (used == output.size()) {
      if (used == max_bytes)
        return make_error(ErrorCode::exhausted, "unpack .gnu_debugdata: larger than {} bytes", max_bytes);
      output.resize(std::min<std::uint64_t>(max_bytes, std::max(kFirstStep, used * 2)));
    }
    stream_.next_out = reinterpret_cast<std::uint8_t*>(output.data() + used);
    stream_.avail_out = output.size() - used;
    status_ = ::lzma_code(&stream_, LZMA_FINISH);
    used = output.size() - stream_.avail_out;
  }
  if (status_ == LZMA_MEMLIMIT_ERROR || status_ == LZMA_MEM_ERROR)
    return make_error(ErrorCode::exhausted, "unpack .gnu_debugdata: its dictionary needs more than {} bytes",
                      max_bytes);
  if (status_ != LZMA_STREAM_END) {
    return make_error(ErrorCode::corrupt, "unpack .gnu_debugdata: xz status {} after {} bytes",
                      static_cast<int>(status_), used);
  }
  output.resize(used);
  return output;
}

}  // namespace

Result<std::vector<std::byte>> unpack_mini_debug_info(const ElfFile& file, std::uint64_t max_bytes) {
  const auto section = file.find_section(".gnu_debugdata");
  if (!section) return make_error(ErrorCode::not_found, "unpack .gnu_debugdata: there is none");
  return XzDecoder(std::max(max_bytes, kUsualDecoderBytes)).unpack(section->data, max_bytes);
}

}  // namespace ddprof
