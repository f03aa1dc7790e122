#include "collect/bpf/context_program.hpp"

#include <linux/bpf_perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

#include <cerrno>
#include <cstring>

#include "base/mapped_region.hpp"
#include "collect/bpf/bpf_call.hpp"

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

namespace ddprof {

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

namespace {

// Registers 6 to 9 survive calls.
constexpr BpfCode::Register kEvent = BPF_REG_6;   // what the kernel gives us
constexpr BpfCode::Register kThread = BPF_REG_7;  // process and thread number
constexpr BpfCode::Register kSlot = BPF_REG_8;    // then: the record of the thread
constexpr BpfCode::Register kTable = BPF_REG_9;   // then: our place in the ring
constexpr BpfCode::Register kFrame = BPF_REG_10;

// Our stack.
constexpr std::int16_t kWord = -8;
constexpr std::int16_t kHead = -40;
constexpr std::int16_t kTime = -48;

constexpr std::int16_t kHeadValid = kHead + 24;
constexpr std::int16_t kHeadAttributeBytes = kHead + 26;
constexpr auto kCopiedHead = static_cast<std::int16_t>(sizeof(ContextHeader));
constexpr auto kCopiedAttributes = static_cast<std::int16_t>(sizeof(ContextHeader) + kContextHeadBytes);

#if defined(__x86_64__)
constexpr auto kInterruptedAddress = static_cast<std::int16_t>(offsetof(bpf_perf_event_data, regs.rip));
#else
constexpr auto kInterruptedAddress = static_cast<std::int16_t>(offsetof(bpf_perf_event_data, regs.pc));
#endif

class ContextProgram {
 public:
  explicit ContextProgram(const ContextProgramFacts& facts) : facts_(facts) {}

  BpfCode write() && {
    code_.copy(kEvent, BPF_REG_1);
    code_.set_map_value(kTable, facts_.table);
    code_.load(BPF_W, BPF_REG_1, kTable, offsetof(ContextTable, used));
    code_.jump_if_equal(BPF_REG_1, 0, done_);
    identify_thread();
    find_slot();
    find_variable();
    read_head();
    BpfCode::Label is_long;
    code_.load(BPF_H, BPF_REG_1, kFrame, kHeadAttributeBytes);
    code_.jump_if_above(BPF_REG_1, kUsualContextAttributes, is_long);
    copy_record(kUsualContextAttributes);
    code_.place(is_long);
    copy_record(kMaxContextAttributes);
    code_.place(lost_);
    code_.set_map_value(BPF_REG_1, facts_.table);
    code_.set(BPF_REG_2, 1);
    code_.add_to_memory(BPF_REG_1, offsetof(ContextTable, lost), BPF_REG_2);
    code_.place(done_);
    code_.set(BPF_REG_0, 1);  // the sample is written
    code_.end();
    return std::move(code_);
  }

 private:
  void identify_thread() {
    if (!facts_.pid_namespace) {
      code_.call(BPF_FUNC_get_current_pid_tgid);
      code_.copy(kThread, BPF_REG_0);
      return;
    }
    code_.set_wide(BPF_REG_1, facts_.pid_namespace->device);
    code_.set_wide(BPF_REG_2, facts_.pid_namespace->inode);
    point_to(BPF_REG_3, kWord);
    code_.set(BPF_REG_4, sizeof(bpf_pidns_info));
    code_.call(BPF_FUNC_get_ns_current_pid_tgid);
    code_.jump_if_other(BPF_REG_0, 0, done_);
    code_.load(BPF_W, kThread, kFrame, kWord + static_cast<std::int16_t>(offsetof(bpf_pidns_info, tgid)));
    code_.shift_left(kThread, 32);
    code_.load(BPF_W, BPF_REG_1, kFrame, kWord + static_cast<std::int16_t>(offsetof(bpf_pidns_info, pid)));
    code_.combine(kThread, BPF_REG_1);
  }

  void find_slot() {
    BpfCode::Label found;
    code_.copy(BPF_REG_2, kThread);
    code_.shift_right(BPF_REG_2, 32);
    for (std::size_t probe = 0; probe < ContextTable::kProbes; ++probe) {
      code_.copy(BPF_REG_4, BPF_REG_2);
      code_.add(BPF_REG_4, static_cast<std::int32_t>(probe));
      code_.mask(BPF_REG_4, ContextTable::kSlots - 1);
      code_.multiply(BPF_REG_4, sizeof(ContextTable::Slot));
      code_.copy(kSlot, kTable);
      code_.add_register(kSlot, BPF_REG_4);
      code_.load(BPF_W, BPF_REG_5, kSlot, in_slot(offsetof(ContextTable::Slot, process)));
      code_.jump_if_same(BPF_REG_5, BPF_REG_2, found);
    }
    code_.jump_always(done_);
    code_.place(found);
  }

  // Leaves the address of the thread's variable in register 3.
  void find_variable() {
    BpfCode::Label is_dynamic, has_base;
    code_.call(BPF_FUNC_get_current_task);
    code_.copy(BPF_REG_3, BPF_REG_0);
    code_.add(BPF_REG_3, static_cast<std::int32_t>(facts_.thread_pointer));
    read(BPF_FUNC_probe_read_kernel, kWord, sizeof(std::uint64_t));
    code_.load(BPF_DW, BPF_REG_3, kFrame, kWord);
    code_.jump_if_equal(BPF_REG_3, 0, done_);  // the kernel's own thread
    code_.load(BPF_W, BPF_REG_1, kSlot, in_slot(offsetof(ContextTable::Slot, kind)));
    code_.jump_if_equal(BPF_REG_1, static_cast<std::int32_t>(ThreadVariable::Kind::dynamic), is_dynamic);
    code_.jump_always(has_base);
    code_.place(is_dynamic);
    find_block_of_module();
    code_.place(has_base);
    code_.load(BPF_DW, BPF_REG_1, kSlot, in_slot(offsetof(ContextTable::Slot, offset)));
    code_.add_register(BPF_REG_3, BPF_REG_1);
  }

  // glibc: the thread has a pointer to its vector at 8; entries have 16 bytes and begin with the address of
  // the block, or -1 as long as the thread has not used it.
  void find_block_of_module() {
    code_.add(BPF_REG_3, 8);
    read(BPF_FUNC_probe_read_user, kWord, sizeof(std::uint64_t));
    code_.load(BPF_DW, BPF_REG_1, kSlot, in_slot(offsetof(ContextTable::Slot, module)));
    code_.mask(BPF_REG_1, 0xffff);
    code_.shift_left(BPF_REG_1, 4);
    code_.load(BPF_DW, BPF_REG_3, kFrame, kWord);
    code_.add_register(BPF_REG_3, BPF_REG_1);
    read(BPF_FUNC_probe_read_user, kWord, sizeof(std::uint64_t));
    code_.load(BPF_DW, BPF_REG_3, kFrame, kWord);
    code_.jump_if_equal(BPF_REG_3, -1, done_);
    code_.jump_if_equal(BPF_REG_3, 0, done_);
  }

  void read_head() {
    read(BPF_FUNC_probe_read_user, kWord, sizeof(std::uint64_t));
    code_.load(BPF_DW, kSlot, kFrame, kWord);
    code_.jump_if_equal(kSlot, 0, done_);
    code_.copy(BPF_REG_3, kSlot);
    read(BPF_FUNC_probe_read_user, kHead, kContextHeadBytes);
    code_.load(BPF_B, BPF_REG_1, kFrame, kHeadValid);
    code_.jump_if_other(BPF_REG_1, 1, done_);
    code_.call(BPF_FUNC_ktime_get_ns);
    code_.store(BPF_DW, kFrame, kTime, BPF_REG_0);
  }

  // The ring wants to know how much before it is known: hence one of these for each size.
  void copy_record(std::size_t most_attributes) {
    BpfCode::Label is_small, is_read;
    code_.set_map(BPF_REG_1, facts_.ring);
    code_.set(BPF_REG_2,
              static_cast<std::int32_t>(sizeof(ContextHeader) + kContextHeadBytes + most_attributes));
    code_.set(BPF_REG_3, 0);
    code_.call(BPF_FUNC_ringbuf_reserve);
    code_.jump_if_equal(BPF_REG_0, 0, lost_);
    code_.copy(kTable, BPF_REG_0);
    write_header();
    for (std::int16_t at = 0; at < 24; at += 8) {
      code_.load(BPF_DW, BPF_REG_1, kFrame, static_cast<std::int16_t>(kHead + at));
      code_.store(BPF_DW, kTable, static_cast<std::int16_t>(kCopiedHead + at), BPF_REG_1);
    }
    code_.load(BPF_W, BPF_REG_1, kFrame, kHead + 24);
    code_.store(BPF_W, kTable, kCopiedHead + 24, BPF_REG_1);
    code_.load(BPF_H, BPF_REG_2, kFrame, kHeadAttributeBytes);
    code_.jump_if_not_above(BPF_REG_2, static_cast<std::int32_t>(most_attributes), is_small);
    code_.set(BPF_REG_2, static_cast<std::int32_t>(most_attributes));
    code_.place(is_small);
    code_.store(BPF_W, kTable, offsetof(ContextHeader, attribute_bytes), BPF_REG_2);
    code_.copy(BPF_REG_1, kTable);
    code_.add(BPF_REG_1, kCopiedAttributes);
    code_.copy(BPF_REG_3, kSlot);
    code_.add(BPF_REG_3, kContextHeadBytes);
    code_.call(BPF_FUNC_probe_read_user);
    code_.jump_if_equal(BPF_REG_0, 0, is_read);
    code_.store_number(BPF_W, kTable, offsetof(ContextHeader, attribute_bytes), 0);
    code_.place(is_read);
    code_.copy(BPF_REG_1, kTable);
    code_.set(BPF_REG_2, BPF_RB_NO_WAKEUP);
    code_.call(BPF_FUNC_ringbuf_submit);
    code_.jump_always(done_);
  }

  void write_header() {
    code_.load(BPF_DW, BPF_REG_1, kFrame, kTime);
    code_.store(BPF_DW, kTable, offsetof(ContextHeader, time), BPF_REG_1);
    code_.store(BPF_DW, kTable, offsetof(ContextHeader, thread), kThread);
    code_.load(BPF_DW, BPF_REG_1, kEvent, kInterruptedAddress);
    code_.store(BPF_DW, kTable, offsetof(ContextHeader, address), BPF_REG_1);
    code_.call(BPF_FUNC_get_smp_processor_id);
    code_.store(BPF_W, kTable, offsetof(ContextHeader, cpu), BPF_REG_0);
  }

  void point_to(BpfCode::Register to, std::int16_t on_stack) {
    code_.copy(to, kFrame);
    code_.add(to, on_stack);
  }

  // From the address in register 3 onto our stack.
  void read(bpf_func_id helper, std::int16_t on_stack, std::int32_t bytes) {
    point_to(BPF_REG_1, on_stack);
    code_.set(BPF_REG_2, bytes);
    code_.call(helper);
    code_.jump_if_other(BPF_REG_0, 0, done_);
  }

  static constexpr std::int16_t in_slot(std::size_t offset) {
    return static_cast<std::int16_t>(offsetof(ContextTable, slots) + offset);
  }

  ContextProgramFacts facts_;
  BpfCode code_;
  BpfCode::Label done_, lost_;
};

}  // namespace

BpfCode context_program(const ContextProgramFacts& facts) { return ContextProgram(facts).write(); }

}  // namespace ddprof
