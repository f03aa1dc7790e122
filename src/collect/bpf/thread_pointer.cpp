#include "collect/bpf/thread_pointer.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

#include <cerrno>
#include <cstring>

#include "base/mapped_region.hpp"
#include "collect/bpf/bpf_call.hpp"
#include "collect/bpf/bpf_code.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kTaskBytes = std::size_t{16} << 10U;  // more than a task_struct has

Result<std::uint64_t> own_thread_pointer() {
#if defined(__x86_64__)
  std::uint64_t pointer = 0;
  if (::syscall(SYS_arch_prctl, ARCH_GET_FS, &pointer) != 0) return errno_error(errno, "arch_prctl");
  return pointer;
#else
  // On aarch64 the kernel keeps the pointer of a running thread in a register alone.
  return make_error(ErrorCode::unsupported, "thread contexts: not on this architecture");
#endif
}

BpfCode copy_own_task(int memory) {
  BpfCode code;
  code.call(BPF_FUNC_get_current_task);
  code.copy(BPF_REG_3, BPF_REG_0);
  code.set_map_value(BPF_REG_1, memory);
  code.set(BPF_REG_2, static_cast<std::int32_t>(kTaskBytes));
  code.call(BPF_FUNC_probe_read_kernel);
  code.set(BPF_REG_0, 0);
  code.end();
  return code;
}

}  // namespace

std::optional<std::uint32_t> find_first_word(std::span<const std::byte> bytes, std::uint64_t value) {
  for (std::size_t at = 0; at + sizeof value <= bytes.size(); at += sizeof value) {
    if (std::memcmp(bytes.data() + at, &value, sizeof value) == 0) return static_cast<std::uint32_t>(at);
  }
  return std::nullopt;
}

Result<std::uint32_t> find_thread_pointer_in_task() {
  const std::uint64_t pointer = TRY(own_thread_pointer());
  const UniqueFd memory = TRY(create_bpf_memory(kTaskBytes));
  const BpfCode code = copy_own_task(memory.get());
  const UniqueFd program =
      TRY(load_bpf_program(BPF_PROG_TYPE_RAW_TRACEPOINT, code.instructions(), "ddprof_own_task"));
  const MappedRegion task = TRY(MappedRegion::map_shared(memory.get(), kTaskBytes));
  TRY(run_bpf_program(program.get()));
  const auto offset = find_first_word(task.bytes(), pointer);
  if (!offset) return make_error(ErrorCode::unsupported, "thread contexts: no thread pointer in task_struct");
  return *offset;
}

}  // namespace ddprof
