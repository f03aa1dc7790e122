#include "collect/bpf/context_ring.hpp"

#include <linux/bpf.h>
#include <unistd.h>

#include "collect/bpf/bpf_call.hpp"

namespace ddprof {

namespace {

using Position = std::uint64_t;

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// GCC and Clang agree with the kernel on what these do.
Position load_position(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const Position*>(at), __ATOMIC_ACQUIRE);
}

}  // namespace

Result<ContextRing> ContextRing::open(std::size_t bytes) {
  UniqueFd fd = TRY(create_bpf_ring(bytes));
  MappedRegion consumer = TRY(MappedRegion::map_shared(fd.get(), page_bytes()));
  MappedRegion producer =
      TRY(MappedRegion::map_shared_for_reading(fd.get(), page_bytes(), page_bytes() + 2 * bytes));
  return ContextRing(std::move(fd), std::move(consumer), std::move(producer), bytes);
}

void ContextRing::drain(const std::function<void(std::span<const std::byte>)>& take) {
  const std::byte* data = producer_.data() + page_bytes();
  Position at = load_position(consumer_.data());
  const Position end = load_position(producer_.data());
  while (at < end) {
    const std::byte* head = data + (at & (bytes_ - 1));
    const std::uint32_t length =
        __atomic_load_n(reinterpret_cast<const std::uint32_t*>(head), __ATOMIC_ACQUIRE);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) break;  // being written on another CPU
    const std::uint32_t size = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if (size > bytes_) break;  // the kernel never writes that
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) take({head + BPF_RINGBUF_HDR_SZ, size});
    at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
  }
  __atomic_store_n(reinterpret_cast<Position*>(consumer_.data()), at, __ATOMIC_RELEASE);
}

}  // namespace ddprof
