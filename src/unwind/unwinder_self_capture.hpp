#pragma once

// For tests and benchmarks: this very process as the target. Captures the calling thread's registers and
// stack, and gives the same bytes to our unwinder and to libdw's.

#include <elfutils/libdwfl.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "elf/elf_file.hpp"
#include "unwind/compile.hpp"
#include "unwind/unwinder.hpp"

namespace ddprof {

struct SelfCapture {
  Registers registers;
  std::vector<std::byte> stack;        // up to the root of the thread
  std::array<void*, 256> backtrace{};  // glibc's view; its first entry is inside of capture()
  int backtrace_size = 0;

  [[nodiscard]] StackCopy copy() const { return {Address{registers.sp}, stack, false, {}}; }
};

inline Registers registers_of(const ucontext_t& context) {
  // Indices into gregs by DWARF number.
  constexpr std::array<int, 16> kOrder{REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                       REG_R12, REG_R13, REG_R14, REG_R15};
  const auto& all = context.uc_mcontext.gregs;
  Registers registers;
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    registers.by_dwarf_number[i] = static_cast<std::uint64_t>(all[kOrder[i]]);
  }
  registers.pc = static_cast<std::uint64_t>(all[REG_RIP]);
  registers.sp = registers.by_dwarf_number[7];
  registers.fp = registers.by_dwarf_number[6];
  return registers;
}

// The end of the calling thread's stack, which is not that of the main thread in the threads that tests
// start.
inline std::uint64_t stack_end() {
  pthread_attr_t attributes;
  void* start = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &start, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uint64_t>(start) + size;
}

// The frame of this function is the leaf of what it captures: it is still there when the stack is copied.
__attribute__((noinline)) inline void capture(SelfCapture& into) {
  into.backtrace_size = backtrace(into.backtrace.data(), static_cast<int>(into.backtrace.size()));
  const std::uint64_t end = stack_end();
  ucontext_t context;
  getcontext(&context);
  into.registers = registers_of(context);
  into.stack.resize(end - into.registers.sp);
  // Through the kernel, so that sanitizers do not mind that all frames are read.
  iovec local{into.stack.data(), into.stack.size()};
  iovec remote{reinterpret_cast<void*>(into.registers.sp), into.stack.size()};
  const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  into.stack.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  asm volatile("" ::: "memory");  // no tail call: the frame must stay
}

// Tables of all code of this process.
class SelfModules {
 public:
  SelfModules() { dl_iterate_phdr(&SelfModules::add_module, this); }

  RuleDictionary rules;
  ModuleMap map;
  std::vector<std::string> names{""};  // by FileId

 private:
  static int add_module(dl_phdr_info* info, std::size_t, void* self) {
    static_cast<SelfModules*>(self)->add(*info);
    return 0;
  }

  void add(const dl_phdr_info& info) {
    const bool is_main = info.dlpi_name == nullptr || *info.dlpi_name == 0;
    const std::string path = is_main ? "/proc/self/exe" : info.dlpi_name;
    std::span<const std::byte> image;
    const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso != 0 && path.find("vdso") != std::string::npos) {
      image = {reinterpret_cast<const std::byte*>(vdso), vdso_bytes()};
    } else {
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      auto region = MappedRegion::map_file(fd.get());
      if (!region.ok()) return;
      images_.push_back(std::move(region).value());
      image = images_.back().bytes();
    }
    auto elf = ElfFile::parse(image);
    if (!elf.ok()) return;
    tables_.push_back(compile_unwind_table(*elf, rules));
    names.push_back(is_main ? "unwind_test" : path.substr(path.rfind('/') + 1));
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& segment = info.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const Address start{info.dlpi_addr + segment.p_vaddr};
      map.add({start, start + segment.p_memsz, info.dlpi_addr, &tables_.back(),
               FileId{static_cast<std::uint32_t>(names.size() - 1)}, elf->data_at(segment.p_vaddr)});
    }
  }

  static std::size_t vdso_bytes() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("[vdso]") == std::string::npos) continue;
      const std::size_t dash = line.find('-');
      return std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line, nullptr, 16);
    }
    return 0;
  }

  std::deque<UnwindTable> tables_;
  std::deque<MappedRegion> images_;
};

// The addresses of a stack at run time, with return addresses as they were in memory.
inline std::vector<std::uint64_t> runtime_addresses(const Stack& stack, const ModuleMap& map) {
  std::vector<std::uint64_t> result;
  for (const Frame& frame : stack.frames) {
    std::uint64_t address = frame.address;
    for (const Module& module : map.modules()) {
      if (module.file == frame.file) address = frame.address + module.bias;
    }
    result.push_back(address);
  }
  return result;
}

// libdw's unwinder over the captured bytes: memory and registers come from callbacks, code and CFI from the
// files.
class DwflOracle {
 public:
  DwflOracle() : dwfl_(dwfl_begin(&kCallbacks)) {
    dwfl_linux_proc_report(dwfl_, getpid());
    dwfl_report_end(dwfl_, nullptr, nullptr);
    dwfl_attach_state(dwfl_, nullptr, getpid(), &kThreadCallbacks, this);
  }
  DwflOracle(const DwflOracle&) = delete;
  DwflOracle& operator=(const DwflOracle&) = delete;
  ~DwflOracle() { dwfl_end(dwfl_); }

  // Addresses to look up: return addresses less one.
  const std::vector<std::uint64_t>& unwind(const SelfCapture& capture) {
    capture_ = &capture;
    addresses_.clear();
    dwfl_getthread_frames(dwfl_, getpid(), &DwflOracle::add_frame, this);
    return addresses_;
  }

 private:
  static pid_t next_thread(Dwfl*, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return getpid();
  }
  static bool get_thread(Dwfl*, pid_t, void* self, void** thread) {
    *thread = self;
    return true;
  }
  static bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* self) {
    const auto& capture = *static_cast<DwflOracle*>(self)->capture_;
    const std::uint64_t offset = address - capture.registers.sp;
    if (offset >= capture.stack.size() || capture.stack.size() - offset < sizeof *result) return false;
    std::memcpy(result, capture.stack.data() + offset, sizeof *result);
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* self) {
    const Registers& registers = static_cast<DwflOracle*>(self)->capture_->registers;
    std::array<Dwarf_Word, 17> words{};
    for (std::size_t i = 0; i < 16; ++i) words[i] = registers.by_dwarf_number[i];
    words[16] = registers.pc;
    return dwfl_thread_state_registers(thread, 0, words.size(), words.data());
  }
  static int add_frame(Dwfl_Frame* frame, void* self) {
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
    static_cast<DwflOracle*>(self)->addresses_.push_back(is_activation ? pc : pc - 1);
    return DWARF_CB_OK;
  }

  static constexpr Dwfl_Callbacks kCallbacks{dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                             nullptr};
  static constexpr Dwfl_Thread_Callbacks kThreadCallbacks{&next_thread,   &get_thread, &read_memory,
                                                          &set_registers, nullptr,     nullptr};

  Dwfl* dwfl_;
  const SelfCapture* capture_ = nullptr;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace ddprof
