#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/turns.hpp"
#include "elf/byte_cursor.hpp"
#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"

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

struct Progress {
  std::size_t read = 0;
  std::size_t written = 0;
  bool is_end = false;
};

class ZlibDecoder {
 public:
  explicit ZlibDecoder(std::span<const std::byte> input) : input_(input) {
    is_ready_ = inflateInit(&stream_) == Z_OK;
  }
  ~ZlibDecoder() { inflateEnd(&stream_); }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

  Result<Progress> next(std::span<std::byte> output) {
    if (!is_ready_) return make_error(ErrorCode::exhausted, "unpack section: zlib did not start");
    const std::size_t given = std::min(input_.size(), kMostInput);
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(output.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      return make_error(ErrorCode::corrupt, "unpack section: zlib status {}", status);
    const std::size_t read = given - stream_.avail_in;
    input_ = input_.subspan(read);
    return Progress{read, output.size() - stream_.avail_out, status == Z_STREAM_END};
  }

 private:
  static constexpr std::size_t kMostInput = std::size_t{1} << 30U;  // zlib counts in 32 bits

  std::span<const std::byte> input_;
  z_stream stream_{};
  bool is_ready_ = false;
};

class ZstdDecoder {
 public:
  explicit ZstdDecoder(std::span<const std::byte> input) : input_{input.data(), input.size(), 0} {
    // Of the decoder itself: what comes of level 19 has 8 MiB.
    constexpr int kMaxWindowBits = 24;
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowBits);
  }

  Result<Progress> next(std::span<std::byte> output) {
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const std::size_t before = input_.pos;
    const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &input_);
    if (ZSTD_isError(left) != 0)
      return make_error(ErrorCode::corrupt, "unpack section: {}", ZSTD_getErrorName(left));
    return Progress{input_.pos - before, out.pos, left == 0 && input_.pos == input_.size};
  }

 private:
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_{ZSTD_createDCtx(), ZSTD_freeDCtx};
  ZSTD_inBuffer input_;
};

// Into `buffer`, from whose beginning it goes on when it is full; `take` has seen by then what was in it.
template <typename Decoder>
Result<void> unpack_with(Decoder decoder, std::uint64_t size, std::span<std::byte> buffer,
                         const Scratch::Append& take) {
  constexpr std::uint64_t kMostAtOnce = std::uint64_t{256} << 10U;
  for (std::uint64_t done = 0;;) {
    const std::size_t at = done % buffer.size();
    const auto room = buffer.subspan(at, std::min({buffer.size() - at, size - done, kMostAtOnce}));
    const Progress progress = TRY(decoder.next(room));
    TRY(take(room.first(progress.written)));
    done += progress.written;
    rest_point();
    if (progress.is_end && done == size) return {};
    if (progress.is_end || (progress.written == 0 && progress.read == 0))
      return make_error(ErrorCode::corrupt, "unpack section: it ends after {} of {} bytes", done, size);
  }
}

Result<void> unpack(const Packed& packed, std::span<std::byte> buffer, const Scratch::Append& take) {
  if (packed.size == 0) return {};
  return packed.is_zstd ? unpack_with(ZstdDecoder(packed.bytes), packed.size, buffer, take)
                        : unpack_with(ZlibDecoder(packed.bytes), packed.size, buffer, take);
}

bool is_old_gnu_form(const ElfSection& section) { return section.name.starts_with(".zdebug"); }

template <typename Header>
Result<Packed> packed_behind(const ElfSection& section) {
  const auto header = load<Header>(section.data, 0);
  if (!header)
    return make_error(ErrorCode::corrupt, "unpack section {}: no compression header", section.name);
  if (header->ch_type != ELFCOMPRESS_ZLIB && header->ch_type != kZstd) {
    return make_error(ErrorCode::unsupported, "unpack section {}: compression type {} is not known",
                      section.name, header->ch_type);
  }
  return Packed{section.data.subspan(sizeof *header), header->ch_size, header->ch_type == kZstd};
}

Result<Packed> packed_of(const ElfSection& section) {
  if (is_old_gnu_form(section)) {
    const auto magic = load<std::uint32_t>(section.data, 0);
    const auto size = load<std::uint64_t>(section.data, 4);
    if (!size || *magic != 0x42494c5a)  // "ZLIB", then the size with its high byte first
      return make_error(ErrorCode::corrupt, "unpack section {}: it does not start with ZLIB", section.name);
    return Packed{section.data.subspan(12), __builtin_bswap64(*size), false};
  }
  return section.is_32_bit ? packed_behind<Elf32_Chdr>(section) : packed_behind<Elf64_Chdr>(section);
}

bool is_packed(const ElfSection& section) { return section.is_compressed() || is_old_gnu_form(section); }

Result<void> check_ratio(const ElfSection& section, const Packed& packed, std::uint64_t ratio) {
  if (packed.size / ratio <= packed.bytes.size()) return {};
  return make_error(ErrorCode::corrupt, "unpack section {}: it claims {} bytes from {}", section.name,
                    packed.size, packed.bytes.size());
}

Result<Packed> possible(const ElfSection& section) {
  const Packed packed = TRY(packed_of(section));
  TRY(check_ratio(section, packed, packed.is_zstd ? kMaxZstdRatio : kMaxZlibRatio));
  return packed;
}

}  // namespace

Result<std::vector<std::byte>> ElfFile::uncompressed(const ElfSection& section,
                                                     std::uint64_t max_bytes) const {
  if (!is_packed(section)) return std::vector<std::byte>(section.data.begin(), section.data.end());
  const Packed packed = TRY(possible(section));
  if (packed.size > max_bytes) {
    return make_error(ErrorCode::exhausted,
                      "unpack section {}: its {} bytes are more than the {} that may be held", section.name,
                      packed.size, max_bytes);
  }
  std::vector<std::byte> output(packed.size);
  TRY(unpack(packed, output, [](std::span<const std::byte>) { return Result<void>(); }));
  return output;
}

Result<MappedRegion> ElfFile::uncompressed(const ElfSection& section, Scratch& scratch) const {
  constexpr std::uint64_t kUsualRatio = 32;
  constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
  const Packed packed = TRY(possible(section));
  TRY(check_ratio(section, packed, kUsualRatio));
  std::vector<std::byte> buffer(kBufferBytes);
  return scratch.fill(packed.size,
                      [&](const Scratch::Append& append) { return unpack(packed, buffer, append); });
}

std::uint64_t ElfFile::uncompressed_bytes(const ElfSection& section) {
  if (!is_packed(section)) return 0;
  const auto packed = possible(section);
  return packed ? packed->size : 0;
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
