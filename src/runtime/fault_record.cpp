#include "runtime/fault_record.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <initializer_list>

#include "base/sanitizer.hpp"

extern "C" const char __ehdr_start;  // of this program, by the linker
extern "C" const char _end;

namespace ddprof {

namespace {

FaultRecord* fault_record = nullptr;  // a handler can reach globals only

std::uint64_t place_in_program(std::uint64_t address) {
  const auto start = reinterpret_cast<std::uint64_t>(&__ehdr_start);
  const auto end = reinterpret_cast<std::uint64_t>(&_end);
  return address >= start && address < end ? address - start : address;
}

void record_fault(int signal, siginfo_t* info, void*) {
  FaultRecord& record = *fault_record;
  std::array<void*, FaultRecord::kMaxFrames + 2> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  record.address = reinterpret_cast<std::uint64_t>(info->si_addr);
  record.count = 0;
  for (int i = 2; i < count; ++i) {  // this function and the kernel's trampoline
    record.frames[record.count++] =
        place_in_program(reinterpret_cast<std::uint64_t>(frames[static_cast<std::size_t>(i)]));
  }
  record.signal = signal;
  ::raise(signal);  // the disposition is the default again
}

}  // namespace

void record_faults_in(FaultRecord& record) {
  if (kHasSanitizer) return;
  fault_record = &record;
  std::array<void*, 2> warm_up{};
  ::backtrace(warm_up.data(), static_cast<int>(warm_up.size()));  // loads what it needs, not in the handler
  alignas(16) static std::array<std::byte, 65536> stack;
  stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_sigaction = record_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP})
    ::sigaction(signal, &action, nullptr);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const FaultRecord& record) {
  std::string text = fmt::format("{} at {:#x} in", signal_name(record.signal), record.address);
  for (std::size_t i = 0; i < record.count && i < FaultRecord::kMaxFrames; ++i) {
    const std::uint64_t frame = record.frames[i];
    text += fmt::format(" {}{:#x}", frame < (std::uint64_t{1} << 32U) ? "ddprof+" : "", frame);
  }
  return text;
}

}  // namespace ddprof
