#include "inject/real_functions.hpp"

#include <dlfcn.h>
#include <errno.h>

#include "inject/attachment.hpp"
#include "inject/sampler.hpp"
#include "inject/thread_state.hpp"

extern "C" {
__attribute__((weak)) int dladdr(const void*, Dl_info*) noexcept;
}

namespace inject {

__thread ThreadState thread_state __attribute__((tls_model("initial-exec"), aligned(64)));

namespace {

// --- Memory for the dynamic loader while it looks for malloc ---

constexpr size_t kBootstrapBytes = 16384;
constexpr size_t kAlignment = 16;
alignas(4096) char bootstrap_memory[kBootstrapBytes];
size_t bootstrap_used;

void* bootstrap_allocate(size_t size) {
  const size_t wanted = (size + 2 * kAlignment - 1) & ~(kAlignment - 1);  // with its size before it
  if (size > kBootstrapBytes || wanted > kBootstrapBytes) return nullptr;
  const size_t at = __atomic_fetch_add(&bootstrap_used, wanted, __ATOMIC_RELAXED);
  if (at > kBootstrapBytes - wanted) return nullptr;
  look_at_bootstrap_blocks();
  char* block = bootstrap_memory + at + kAlignment;
  __builtin_memcpy(block - kAlignment, &size, sizeof size);
  return block;
}

// --- The functions that find the others ---

// dlsym() goes by its return address, so that it must not be the last thing its caller does.
void* find_next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  asm volatile("" : "+r"(found)::"memory");
  return found;
}

template <typename Function>
void set_if_found(Function& function, const char* name) {
  if (void* found = find_next(name))
    __atomic_store_n(&function, reinterpret_cast<Function>(found), __ATOMIC_RELEASE);
}

const void* module_of(const void* address) {
  Dl_info info{};
  return address != nullptr && &dladdr != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

bool has_name(const char* text, const char* part) {
  for (; *text != '\0'; ++text) {
    const char* one = text;
    const char* other = part;
    while (*other != '\0' && *one == *other) ++one, ++other;
    if (*other == '\0') return true;
  }
  return false;
}

// Whether calls of the program come to us: what the program itself defines is before us.
bool is_first(const char* name) {
  return module_of(dlsym(RTLD_DEFAULT, name)) == module_of(bootstrap_memory);
}

// A program may define some of the operators alone, over memory of its own: the library's forms call those,
// and must go on to do so. Where in doubt ours forward.
NewKind find_new_kind() {
  if (!is_first("malloc") || !is_first("free") || !is_first("_Znwm") || !is_first("_ZdlPv"))
    return NewKind::other;
  const void* found = find_next("_Znwm");
  Dl_info info{};
  if (found == nullptr || &dladdr == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr)
    return NewKind::plain;  // a C++ library that comes later calls malloc too
  if (info.dli_fbase == module_of(reinterpret_cast<const void*>(real.malloc))) return NewKind::allocator;
  return has_name(info.dli_fname, "libstdc++") || has_name(info.dli_fname, "libc++") ? NewKind::plain
                                                                                     : NewKind::other;
}

// False: this very thread is at it.
bool resolve() {
  ThreadState& state = thread_state;
  if (state.is_resolving) return false;
  state.is_resolving = true;
  const int error = errno;
  set_if_found(real.calloc, "calloc");
  set_if_found(real.realloc, "realloc");
  set_if_found(real.free, "free");
  set_if_found(real.posix_memalign, "posix_memalign");
  set_if_found(real.aligned_alloc, "aligned_alloc");
  set_if_found(real.memalign, "memalign");
  set_if_found(real.valloc, "valloc");
  set_if_found(real.pvalloc, "pvalloc");
  set_if_found(real.prctl, "prctl");
  set_if_found(real.syscall, "syscall");
  set_if_found(real.setuid, "setuid");
  set_if_found(real.seteuid, "seteuid");
  set_if_found(real.setreuid, "setreuid");
  set_if_found(real.setresuid, "setresuid");
  set_if_found(real.setgid, "setgid");
  set_if_found(real.setresgid, "setresgid");
  set_if_found(real.chroot, "chroot");
  set_if_found(real.malloc, "malloc");
  new_kind = find_new_kind();
  attachment.read_environment_early();
  errno = error;
  state.is_resolving = false;
  return true;
}

// Where the real function is not to be had there is no allocator at all.
void* out_of_memory() {
  errno = ENOMEM;
  return nullptr;
}

void* first_malloc(size_t size) {
  if (!resolve()) return bootstrap_allocate(size);
  return real.malloc != first_malloc ? real.malloc(size) : out_of_memory();
}

void* first_calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (thread_state.is_resolving)
    return __builtin_mul_overflow(count, size, &bytes) ? nullptr : bootstrap_allocate(bytes);
  resolve();
  return real.calloc != first_calloc ? real.calloc(count, size) : out_of_memory();
}

void* first_realloc(void* block, size_t size) {
  if (!resolve()) return bootstrap_allocate(size);
  return real.realloc != first_realloc ? real.realloc(block, size) : out_of_memory();
}

void first_free(void* block) {
  if (resolve() && real.free != first_free) real.free(block);
}

int first_posix_memalign(void** block, size_t alignment, size_t size) {
  return resolve() && real.posix_memalign != first_posix_memalign
             ? real.posix_memalign(block, alignment, size)
             : ENOMEM;
}

// The others are not what the dynamic loader calls.
template <auto member, typename Result, typename... Arguments>
Result find_first(Arguments... arguments) {
  const auto before = real.*member;
  resolve();
  if (real.*member != before) return (real.*member)(arguments...);
  errno = ENOSYS;
  if constexpr (__is_same(Result, void*)) {
    return nullptr;
  } else {
    return -1;
  }
}

template <auto member>
struct FirstOf;
template <typename Result, typename... Arguments, Result (*RealFunctions::*member)(Arguments...)>
struct FirstOf<member> {
  static Result call(Arguments... arguments) {
    return find_first<member, Result, Arguments...>(arguments...);
  }
};
template <auto member>
constexpr auto first = &FirstOf<member>::call;

}  // namespace

constinit RealFunctions real{
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .free = first_free,
    .posix_memalign = first_posix_memalign,
    .aligned_alloc = first<&RealFunctions::aligned_alloc>,
    .memalign = first<&RealFunctions::memalign>,
    .valloc = first<&RealFunctions::valloc>,
    .pvalloc = first<&RealFunctions::pvalloc>,
    .prctl = first<&RealFunctions::prctl>,
    .syscall = first<&RealFunctions::syscall>,
    .setuid = first<&RealFunctions::setuid>,
    .seteuid = first<&RealFunctions::seteuid>,
    .setreuid = first<&RealFunctions::setreuid>,
    .setresuid = first<&RealFunctions::setresuid>,
    .setgid = first<&RealFunctions::setgid>,
    .setresgid = first<&RealFunctions::setresgid>,
    .chroot = first<&RealFunctions::chroot>,
};
NewKind new_kind;

NewKind known_new_kind() {
  if (new_kind == NewKind::unknown) resolve();
  return new_kind;
}

// By its address this cannot be told: that of a program at a fixed place may be the program's own, and lead
// here.
bool has_hooks() {
  const auto allocate = reinterpret_cast<void* (*)(size_t)>(dlsym(RTLD_DEFAULT, "malloc"));
  const auto release = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "free"));
  if (allocate == nullptr || release == nullptr) return false;
  const uint64_t before = *static_cast<volatile uint64_t*>(&thread_state.countdown);
  release(allocate(1));
  return *static_cast<volatile uint64_t*>(&thread_state.countdown) != before;
}

void* find_real(const char* name) { return find_next(name); }

// A module that was loaded for itself alone has its C++ library behind it, where RTLD_NEXT does not look; but
// the operators that it calls are ours.
void* find_in_cpp_library(const char* name) {
  if (void* found = find_next(name)) return found;
  constexpr const char* kLibraries[] = {"libstdc++.so.6", "libc++.so.1"};
  for (const char* library : kLibraries) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);
    if (found != nullptr) return found;
  }
  return nullptr;
}

bool is_bootstrap_block(const void* block) {
  return block >= bootstrap_memory && block < bootstrap_memory + kBootstrapBytes;
}

void look_at_bootstrap_blocks() {
  if (bootstrap_used == 0) return;
  for (size_t page = 0; page < kBootstrapBytes; page += 4096)
    page_filter.stick(reinterpret_cast<uint64_t>(bootstrap_memory + page));
}

size_t bootstrap_block_size(const void* block) {
  size_t size = 0;
  __builtin_memcpy(&size, static_cast<const char*>(block) - kAlignment, sizeof size);
  return size;
}

}  // namespace inject
