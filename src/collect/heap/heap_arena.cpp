#include "collect/heap/heap_arena.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

namespace ddprof {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeaderBytes = (sizeof(ddprof_heap_header) + kPage - 1) / kPage * kPage;
constexpr std::size_t kSlotBytes = sizeof(ddprof_heap_slot);

off_t slot_offset(std::uint32_t number) {
  return static_cast<off_t>(kHeaderBytes + std::size_t{number} * kSlotBytes);
}

// Of a size that neither side can change any more: to read behind the end would be a SIGBUS.
Result<UniqueFd> make_memory_file(const char* name, std::size_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return errno_error(errno, "memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_error(errno, "size of memory file");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return errno_error(errno, "seal memory file");
  return fd;
}

}  // namespace

Result<HeapArena> HeapArena::create(const HeapSettings& settings) {
  HeapArena arena;
  arena.arena_fd_ = TRY(make_memory_file("ddprof-heap", kHeaderBytes + DDPROF_HEAP_SLOTS * kSlotBytes));
  arena.tables_fd_ = TRY(make_memory_file("ddprof-tables", DDPROF_HEAP_TABLES_BYTES));
  arena.header_ = TRY(MappedRegion::map_shared(arena.arena_fd_.get(), kHeaderBytes));
  arena.tables_ = TRY(MappedRegion::map_shared(arena.tables_fd_.get(), DDPROF_HEAP_TABLES_BYTES));
#ifdef F_SEAL_FUTURE_WRITE
  // Since Linux 5.1: from now on nobody can map it writable. Before, a target could harm its own stacks.
  ::fcntl(arena.tables_fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
#endif
  auto& tables = *reinterpret_cast<ddprof_heap_tables*>(arena.tables_.data());
  tables.magic = DDPROF_HEAP_MAGIC;
  tables.version = DDPROF_HEAP_VERSION;

  ddprof_heap_header& header = arena.header();
  if (::getrandom(&header.nonce, sizeof header.nonce, 0) != static_cast<ssize_t>(sizeof header.nonce))
    return errno_error(errno, "getrandom");
  header.version = DDPROF_HEAP_VERSION;
  header.header_bytes = kHeaderBytes;
  header.slot_bytes = kSlotBytes;
  header.tables_descriptor = static_cast<std::uint32_t>(arena.tables_fd_.get());
  header.root_pid = static_cast<std::uint32_t>(to_int(settings.root));
  header.control.interval = settings.interval;
  header.control.max_per_second = settings.max_per_second;
  header.control.flags = settings.has_live_blocks ? DDPROF_HEAP_LIVE : 0;
  header.magic = DDPROF_HEAP_MAGIC;
  arena.location_ = fmt::format("/proc/{}/fd/{}:{:x}:{:x}", ::getpid(), arena.arena_fd_.get(), header.nonce,
                                settings.interval);
  return arena;
}

Result<MappedRegion> HeapArena::map_slot(std::uint32_t number) const {
  return MappedRegion::map_shared(arena_fd_.get(), kSlotBytes, slot_offset(number));
}

void HeapArena::release_slot(std::uint32_t number) const {
  // A slot that is not empty would show its next process what its last one did.
  if (::fallocate(arena_fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, slot_offset(number),
                  kSlotBytes) != 0)
    return;
  ddprof_heap_claim& claim = header().claims[number];
  __atomic_store_n(&claim.counted, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&claim.time, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&claim.pid, 0, __ATOMIC_RELEASE);
}

}  // namespace ddprof
