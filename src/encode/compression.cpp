#include "encode/compression.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "base/turns.hpp"

namespace ddprof {

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 asks for a gzip header
constexpr std::size_t kChunk = std::size_t{64} << 10;

struct Deflater {
  z_stream stream{};
  ~Deflater() { deflateEnd(&stream); }
};

struct Inflater {
  z_stream stream{};
  ~Inflater() { inflateEnd(&stream); }
};

// zlib does not write through next_in, but its type says that it might.
Bytef* as_input(const void* bytes) { return const_cast<Bytef*>(static_cast<const Bytef*>(bytes)); }

uInt chunk_of(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

// What the last member says of its size, unless that cannot be: deflate makes at most 1,032 bytes of one.
std::size_t likely_size(std::span<const std::byte> bytes, std::size_t limit) {
  constexpr std::size_t kMostPerByte = 1032;
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) return 0;
  std::memcpy(&size, bytes.last(sizeof size).data(), sizeof size);
  return size / kMostPerByte > bytes.size() || size > limit ? 0 : size;
}

}  // namespace

Result<std::string> gzip(std::string_view bytes, int level) {
  Deflater deflater;
  z_stream& stream = deflater.stream;
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return make_error(ErrorCode::exhausted, "gzip: out of memory");
  }
  std::string out;
  out.resize(deflateBound(&stream, bytes.size()));
  std::size_t written = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    stream.next_in = as_input(bytes.data());
    stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kChunk));
    stream.next_out = reinterpret_cast<Bytef*>(out.data()) + written;
    stream.avail_out = chunk_of(out.size() - written);
    const uInt given = stream.avail_in, room = stream.avail_out;
    rest_point();
    state = deflate(&stream, given == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END)
      return make_error(ErrorCode::failed, "gzip: zlib error {}", state);
    bytes.remove_prefix(given - stream.avail_in);
    written += room - stream.avail_out;
  }
  out.resize(written);
  return out;
}

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

Result<std::string> gunzip(std::span<const std::byte> bytes, std::size_t limit) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK)
    return make_error(ErrorCode::exhausted, "gunzip: out of memory");
  std::string out(likely_size(bytes, limit), '\0');
  std::size_t written = 0;
  while (true) {
    out.resize(std::min(limit + 1, std::max(written + kChunk, out.size())));
    stream.next_in = as_input(bytes.data());
    stream.avail_in = chunk_of(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data()) + written;
    stream.avail_out = chunk_of(out.size() - written);
    const uInt given = stream.avail_in, room = stream.avail_out;
    const int state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) {
      return make_error(ErrorCode::corrupt, "gunzip: {}",
                        stream.msg != nullptr ? stream.msg : "the data ends too soon");
    }
    bytes = bytes.subspan(given - stream.avail_in);
    written += room - stream.avail_out;
    if (written > limit) return make_error(ErrorCode::corrupt, "gunzip: more than {} bytes come out", limit);
    if (state != Z_STREAM_END) continue;
    if (!is_gzip(bytes)) break;  // the end, or padding behind it
    if (inflateReset(&stream) != Z_OK) return make_error(ErrorCode::failed, "gunzip: zlib cannot restart");
  }
  out.resize(written);
  return out;
}

Result<std::string> zstd(std::string_view bytes, int level) {
  constexpr std::size_t kZstdChunk = std::size_t{128} << 10U;
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) return make_error(ErrorCode::exhausted, "zstd: out of memory");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), bytes.size());
  std::string out;
  out.resize(ZSTD_compressBound(bytes.size()));
  ZSTD_outBuffer output{out.data(), out.size(), 0};
  for (std::size_t left = 1; left != 0;) {
    ZSTD_inBuffer input{bytes.data(), std::min(bytes.size(), kZstdChunk), 0};
    const bool is_last = input.size == bytes.size();
    left = ZSTD_compressStream2(context.get(), &output, &input, is_last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) return make_error(ErrorCode::failed, "zstd: {}", ZSTD_getErrorName(left));
    bytes.remove_prefix(input.pos);
    if (!is_last) left = 1;
    rest_point();
  }
  out.resize(output.pos);
  return out;
}

}  // namespace ddprof
