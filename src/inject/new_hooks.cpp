// operator new and delete in all their forms. Those of the C++ library call malloc and free: ours do so
// directly, and save a call. When there is no memory the library's own is called, which knows of handlers and
// exceptions.

#include "inject/hooks.hpp"

namespace inject {

namespace {

// The name of a function as the linker knows it.
template <size_t length>
struct Name {
  constexpr Name(const char (&name)[length]) {  // NOLINT: meant to be implicit
    for (size_t i = 0; i < length; ++i) text[i] = name[i];
  }
  char text[length]{};
};

// That of the program.
template <Name name, typename Result, typename... Arguments>
Result call_program(Arguments... arguments) {
  static Result (*function)(Arguments...) = nullptr;
  auto found = __atomic_load_n(&function, __ATOMIC_ACQUIRE);
  if (found == nullptr) {
    found = reinterpret_cast<Result (*)(Arguments...)>(find_in_cpp_library(name.text));
    if (found == nullptr) __builtin_trap();  // no memory is left, and there is no library that could throw
    __atomic_store_n(&function, found, __ATOMIC_RELEASE);
  }
  return found(arguments...);
}

// What the C++ library's forms come to.
void* allocate(size_t size) { return real.malloc(size != 0 ? size : 1); }
void* allocate(size_t size, const void*) { return allocate(size); }
void* allocate(size_t size, size_t alignment) {
  size_t bytes = 0;
  if (__builtin_add_overflow(size != 0 ? size : 1, alignment - 1, &bytes)) return nullptr;
  return real.aligned_alloc(alignment, bytes & ~(alignment - 1));
}
void* allocate(size_t size, size_t alignment, const void*) { return allocate(size, alignment); }

// After count_down(): a sample is due, or there is no memory.
template <Name name, typename... Rest>
DDPROF_SLOW void* new_slowly(size_t size, Rest... rest) {
  {
    SlowPath slow(size);
    void* block = allocate(size, rest...);
    slow.take(block, __builtin_frame_address(0));
    if (block != nullptr) return block;
  }
  return call_program<name, void*>(size, rest...);  // over malloc, if a handler finds memory
}

template <Name name, typename... Rest>
DDPROF_SLOW void* new_by_allocator(size_t size, Rest... rest) {
  SlowPath slow(size);
  slow.let_go();
  void* block = call_program<name, void*>(size, rest...);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

// An allocator's operator may call malloc or aligned_alloc as anybody does, which are ours: to count both
// would be twice. Each form is tried once, with a block that stays.
template <Name name, typename... Rest>
bool comes_to_us(Rest... rest) {
  enum : uint8_t { unknown, no, yes };
  static uint8_t answer;
  if (__builtin_expect(answer == unknown, 0)) {
    constexpr uint64_t kFar = uint64_t{1} << 40U;
    const uint64_t before = thread_state.countdown;
    thread_state.countdown = kFar;
    call_program<name, void*>(size_t{1}, rest...);
    answer = thread_state.countdown == kFar ? no : yes;
    thread_state.countdown = before;
  }
  return answer == yes;
}

template <Name name, typename... Rest>
void* new_block(size_t size, Rest... rest);

template <Name name, typename... Rest>
[[gnu::noinline]] void* new_by_program(size_t size, Rest... rest) {
  switch (known_new_kind()) {
    case NewKind::unknown:  // the dynamic loader asks, while we look for it
      return allocate(size, rest...);
    case NewKind::plain:
      return new_block<name>(size, rest...);
    case NewKind::allocator:
      if (!comes_to_us<name>(rest...) && count_down(size)) return new_by_allocator<name>(size, rest...);
      break;
    case NewKind::other:
      break;
  }
  return call_program<name, void*>(size, rest...);
}

template <Name name, typename... Rest>
void* new_block(size_t size, Rest... rest) {
  if (__builtin_expect(new_kind != NewKind::plain, 0)) return new_by_program<name>(size, rest...);
  if (count_down(size)) return new_slowly<name>(size, rest...);
  void* block = allocate(size, rest...);
  return __builtin_expect(block != nullptr, 1) ? block : new_slowly<name>(size, rest...);
}

template <Name name, typename... Rest>
DDPROF_SLOW void delete_slowly(void* block, Rest... rest) {
  if (may_be_sampled(block)) forget_block(block);  // an allocator's own form does not come to our free
  if (is_bootstrap_block(block)) return;
  const NewKind kind = known_new_kind();
  const bool is_forwarded = kind != NewKind::plain && kind != NewKind::unknown;
  return is_forwarded ? call_program<name, void>(block, rest...) : real.free(block);
}

template <Name name, typename... Rest>
void delete_block(void* block, Rest... rest) {
  const bool is_plain = __builtin_expect(new_kind == NewKind::plain, 1);
  return is_plain && !may_be_sampled(block) ? real.free(block) : delete_slowly<name>(block, rest...);
}

}  // namespace
}  // namespace inject

using inject::delete_block;
using inject::new_block;

// clang-format off
DDPROF_EXPORT void* _Znwm(size_t size) { return new_block<"_Znwm">(size); }
DDPROF_EXPORT void* _Znam(size_t size) { return new_block<"_Znam">(size); }
DDPROF_EXPORT void* _ZnwmRKSt9nothrow_t(size_t size, const void* tag) { return new_block<"_ZnwmRKSt9nothrow_t">(size, tag); }
DDPROF_EXPORT void* _ZnamRKSt9nothrow_t(size_t size, const void* tag) { return new_block<"_ZnamRKSt9nothrow_t">(size, tag); }
DDPROF_EXPORT void* _ZnwmSt11align_val_t(size_t size, size_t alignment) { return new_block<"_ZnwmSt11align_val_t">(size, alignment); }
DDPROF_EXPORT void* _ZnamSt11align_val_t(size_t size, size_t alignment) { return new_block<"_ZnamSt11align_val_t">(size, alignment); }
DDPROF_EXPORT void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* tag) { return new_block<"_ZnwmSt11align_val_tRKSt9nothrow_t">(size, alignment, tag); }
DDPROF_EXPORT void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void* tag) { return new_block<"_ZnamSt11align_val_tRKSt9nothrow_t">(size, alignment, tag); }

DDPROF_EXPORT void _ZdlPv(void* block) { return delete_block<"_ZdlPv">(block); }
DDPROF_EXPORT void _ZdaPv(void* block) { return delete_block<"_ZdaPv">(block); }
DDPROF_EXPORT void _ZdlPvm(void* block, size_t size) { return delete_block<"_ZdlPvm">(block, size); }
DDPROF_EXPORT void _ZdaPvm(void* block, size_t size) { return delete_block<"_ZdaPvm">(block, size); }
DDPROF_EXPORT void _ZdlPvRKSt9nothrow_t(void* block, const void* tag) { return delete_block<"_ZdlPvRKSt9nothrow_t">(block, tag); }
DDPROF_EXPORT void _ZdaPvRKSt9nothrow_t(void* block, const void* tag) { return delete_block<"_ZdaPvRKSt9nothrow_t">(block, tag); }
DDPROF_EXPORT void _ZdlPvSt11align_val_t(void* block, size_t alignment) { return delete_block<"_ZdlPvSt11align_val_t">(block, alignment); }
DDPROF_EXPORT void _ZdaPvSt11align_val_t(void* block, size_t alignment) { return delete_block<"_ZdaPvSt11align_val_t">(block, alignment); }
DDPROF_EXPORT void _ZdlPvmSt11align_val_t(void* block, size_t size, size_t alignment) { return delete_block<"_ZdlPvmSt11align_val_t">(block, size, alignment); }
DDPROF_EXPORT void _ZdaPvmSt11align_val_t(void* block, size_t size, size_t alignment) { return delete_block<"_ZdaPvmSt11align_val_t">(block, size, alignment); }
DDPROF_EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* tag) { return delete_block<"_ZdlPvSt11align_val_tRKSt9nothrow_t">(block, alignment, tag); }
DDPROF_EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* block, size_t alignment, const void* tag) { return delete_block<"_ZdaPvSt11align_val_tRKSt9nothrow_t">(block, alignment, tag); }
// clang-format on
