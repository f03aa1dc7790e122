#include "inject/attachment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "inject/sampler.hpp"
#include "inject/system_calls.hpp"

extern "C" __attribute__((weak)) char** environ;

namespace inject {

constinit Attachment attachment{};

namespace {

constexpr size_t kPage = 4096;

// As the profiler knows us, whose /proc this is: in another PID namespace we know another number.
uint32_t own_pid() {
  char digits[12]{};
  const long length = system_call(SYS_readlinkat, AT_FDCWD, to_argument("/proc/self"), to_argument(digits),
                                  sizeof digits - 1);
  uint32_t pid = 0;
  for (long i = 0; i < length; ++i) {
    if (digits[i] < '0' || digits[i] > '9') return static_cast<uint32_t>(system_call(SYS_getpid));
    pid = pid * 10 + static_cast<uint32_t>(digits[i] - '0');
  }
  return pid != 0 ? pid : static_cast<uint32_t>(system_call(SYS_getpid));
}

// A program whose address space is limited has none to spare for us.
bool has_room() {
  constexpr uint64_t kPlenty = uint64_t{1} << 30U;
  rlimit64 limit{};
  return !has_failed(system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, to_argument(&limit))) &&
         (limit.rlim_cur >= kPlenty || limit.rlim_cur == RLIM64_INFINITY);
}

const char* variable(const char* name) {
  if (&environ == nullptr || environ == nullptr) return nullptr;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* text = *entry;
    const char* wanted = name;
    while (*wanted != '\0' && *text == *wanted) ++text, ++wanted;
    if (*wanted == '\0' && *text == '=') return text + 1;
  }
  return nullptr;
}

// Moves `text` behind a hexadecimal number.
bool take_number(const char*& text, uint64_t& value) {
  const char* begin = text;
  for (value = 0; text - begin <= 16; ++text) {
    const char digit = *text;
    if (digit >= '0' && digit <= '9')
      value = value << 4U | static_cast<uint64_t>(digit - '0');
    else if (digit >= 'a' && digit <= 'f')
      value = value << 4U | static_cast<uint64_t>(digit - 'a' + 10);
    else
      break;
  }
  return text != begin;
}

bool means_no(const char* text) { return text != nullptr && (*text == '0' || *text == 'f' || *text == 'n'); }

// Of the profiler, which may be another process by now: what cannot be mapped is not opened for long, and a
// pipe or a terminal is not waited for.
int open_descriptor(const char* path, int flags) {
  const long fd =
      system_call(SYS_openat, AT_FDCWD, to_argument(path), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return has_failed(fd) ? -1 : static_cast<int>(fd);
}

bool has_size(int fd, uint64_t bytes) {
  struct stat status {};
  return !has_failed(system_call(SYS_fstat, fd, to_argument(&status))) && S_ISREG(status.st_mode) &&
         static_cast<uint64_t>(status.st_size) >= bytes;
}

void close_descriptor(int fd) { system_call(SYS_close, fd); }

}  // namespace

void Attachment::read_environment_early() {
  if (state() == State::unknown && variable(DDPROF_HEAP_VARIABLE) != nullptr) read_environment();
}

void Attachment::read_environment() {
  const char* text = variable(DDPROF_HEAP_VARIABLE);
  const State found = text != nullptr && parse(text) ? State::wanted : State::dormant;
  change_state(State::unknown, found);
}

// PATH:NONCE:INTERVAL
bool Attachment::parse(const char* text) {
  uint32_t length = 0;
  folder_length_ = 0;
  for (; *text != '\0' && *text != ':'; ++text) {
    if (length + 1 == kLongestPath) return false;
    path_[length++] = *text;
    if (*text == '/') folder_length_ = length;
  }
  path_[length] = '\0';
  return *text++ == ':' && take_number(text, nonce_) && *text++ == ':' && take_number(text, first_interval_);
}

uint64_t Attachment::interval() const {
  switch (state()) {
    case State::dormant:
      return kDormantInterval;
    case State::wanted:
    case State::attaching:
      return first_interval_;
    case State::attached: {
      const uint64_t wanted = __atomic_load_n(&slot_->control.interval, __ATOMIC_RELAXED);
      const uint64_t used = __atomic_load_n(&slot_->pace.interval, __ATOMIC_RELAXED);
      return wanted == 0 || used < wanted ? wanted : used;
    }
    default:
      return 0;
  }
}

ddprof_heap_slot* Attachment::slot() {
  if (!is_sandboxed_ && change_state(State::wanted, State::attaching))
    set_state(attach() ? State::attached : State::off);
  return own_slot();
}

bool Attachment::attach() {
  if (!map_alive()) return false;
  const int arena = open_descriptor(path_, O_RDWR);
  if (arena < 0) return false;
  bool is_attached = false;
  if (has_size(arena, sizeof(ddprof_heap_header))) {
    void* memory = map_memory(sizeof(ddprof_heap_header), PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
    if (memory != nullptr) {
      is_attached = claim(arena, *static_cast<ddprof_heap_header*>(memory));
      unmap_memory(memory, sizeof(ddprof_heap_header));
    }
  }
  close_descriptor(arena);
  return is_attached;
}

bool Attachment::claim(int arena, ddprof_heap_header& header) {
  if (header.magic != DDPROF_HEAP_MAGIC || header.version != DDPROF_HEAP_VERSION || header.nonce != nonce_)
    return false;
  const uint32_t pid = own_pid();
  if (header.root_pid != 0 && header.root_pid != pid && means_no(variable(DDPROF_HEAP_FOLLOW_VARIABLE)))
    return false;
  if (!has_room()) {
    __atomic_fetch_add(&header.limited, 1, __ATOMIC_RELAXED);
    return false;
  }
  for (uint32_t number = 0; number < DDPROF_HEAP_SLOTS; ++number) {
    uint32_t free = 0;
    ddprof_heap_claim& claim = header.claims[number];
    if (!__atomic_compare_exchange_n(&claim.pid, &free, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    if (map_slot(arena, header, number)) {
      __atomic_store_n(&claim.time, monotonic_ns(), __ATOMIC_RELEASE);
      return true;
    }
    __atomic_store_n(&claim.pid, 0, __ATOMIC_RELEASE);
    return false;
  }
  __atomic_fetch_add(&header.refused, 1, __ATOMIC_RELAXED);
  return false;
}

bool Attachment::map_slot(int arena, const ddprof_heap_header& header, uint32_t number) {
  if (slot_ != nullptr && header.slot_bytes != slot_bytes_) return false;
  slot_bytes_ = header.slot_bytes;
  const uint64_t offset = header.header_bytes + number * slot_bytes_;
  if (slot_bytes_ < sizeof(ddprof_heap_slot) || offset % kPage != 0 ||
      !has_size(arena, offset + slot_bytes_) || !map_tables(header.tables_descriptor))
    return false;
  // In the place of an earlier one, if there was any: a thread may have been late.
  void* memory = slot_ == nullptr
                     ? map_memory(slot_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, arena, offset)
                     : map_memory_over(slot_, slot_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, arena, offset);
  if (memory == nullptr) return false;
  // A child must not write to our slot.
  if (has_failed(
          system_call(SYS_madvise, to_argument(memory), static_cast<long>(slot_bytes_), MADV_DONTFORK))) {
    empty_slot(memory);
    return false;
  }
  slot_ = static_cast<ddprof_heap_slot*>(memory);
  slot_->control = header.control;
  code_.use(slot_);
  return true;
}

// By this page a child sees that it is not its parent: it is inherited, as zeros. However the child was made,
// and not where it shares all memory with its parent.
bool Attachment::map_alive() {
  if (alive_ != nullptr) return true;
  void* page = map_memory(kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == nullptr) return false;
  if (has_failed(system_call(SYS_madvise, to_argument(page), kPage, MADV_WIPEONFORK))) {
    unmap_memory(page, kPage);
    return false;
  }
  *static_cast<uint32_t*>(page) = 1;
  __atomic_store_n(&alive_, static_cast<uint32_t*>(page), __ATOMIC_RELEASE);
  return true;
}

// Beside the arena in /proc/PID/fd.
bool Attachment::map_tables(uint32_t descriptor) {
  if (code_.has_tables() && !is_begun_) return true;  // inherited by fork
  char path[kLongestPath + 12];
  uint32_t length = 0;
  for (; length < folder_length_; ++length) path[length] = path_[length];
  char digits[10];
  uint32_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + descriptor % 10);
    descriptor /= 10;
  } while (descriptor != 0);
  while (count > 0) path[length++] = digits[--count];
  path[length] = '\0';
  const int fd = open_descriptor(path, O_RDONLY);
  if (fd < 0) return false;
  const bool is_mapped = has_size(fd, DDPROF_HEAP_TABLES_BYTES) && code_.map_tables(fd);
  close_descriptor(fd);
  return is_mapped;
}

// Blocks that the parent had allocated are in the parent's profile. By one thread: the child may have several
// by the time it is noticed. A thread of the parent that was attaching is not here any more.
void Attachment::forget_parent(State before) {
  if (!change_state(before, State::forgetting)) return;
  if (!is_sandboxed_) forget_live_blocks();
  thread_state.tid = 0;
  thread_state.random = 0;
  slot_ = nullptr;  // it was not inherited
  __atomic_store_n(alive_, 1, __ATOMIC_RELEASE);
  const State next = is_begun_ ? State::dormant : State::wanted;
  is_begun_ = false;
  set_state(is_sandboxed_ ? State::off : next);
}

bool Attachment::begin(const char* location) {
  if (is_taken() || is_sandboxed_ || !parse(location)) return false;
  if (alive_ != nullptr && !is_alive()) {  // forked since the last one
    slot_ = nullptr;
    __atomic_store_n(alive_, 1, __ATOMIC_RELEASE);
  }
  is_begun_ = true;
  if (!change_state(state(), State::attaching)) return false;
  is_begun_ = attach();
  set_state(is_begun_ ? State::attached : State::dormant);
  return is_begun_;
}

// Memory of its own, in the same place: a thread that has looked before may still be writing there.
void Attachment::empty_slot(void* memory) {
  if (map_memory_over(memory, slot_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != nullptr)
    system_call(SYS_madvise, to_argument(memory), static_cast<long>(slot_bytes_), MADV_DONTFORK);
  slot_ = static_cast<ddprof_heap_slot*>(memory);
}

void Attachment::end() {
  look_around();
  if (!is_begun_ || !change_state(State::attached, State::forgetting)) return;
  empty_slot(slot_);
  code_.empty();
  forget_live_blocks();
  set_state(State::dormant);
}

void Attachment::before_sandbox(bool is_strict) {
  look_around();
  slot();
  is_sandboxed_ = true;
  if (is_strict && state() == State::attached) set_state(State::off);
}

}  // namespace inject
