#include "elf/mini_debug_info.hpp"

#include <lzma.h>

#include <algorithm>

namespace ddprof {

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
