#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/frame.hpp"
#include "collect/collector.hpp"
#include "process/process_table.hpp"
#include "session/code_index.hpp"
#include "session/live_memory.hpp"
#include "unwind/unwinder.hpp"

namespace ddprof {

// The frames of one sample, leaf first: kernel, then user, then a marker when the root was not reached.
struct BuiltStack {
  std::span<const Frame> frames;  // valid until the next build
  StopReason reason = StopReason::complete;
  FileId stop_file = FileId::none;
  bool is_deep = false;       // reaches beyond what was copied, completed or not
  bool is_from_code = false;  // some frame was left by a rule made from instructions
};

// From registers and bytes to frames: chooses the process's modules, unwinds, completes deep stacks from what
// is known of the thread, and reads /proc once for code that no record explained.
class StackBuilder {
 public:
  StackBuilder(ProcessTable& processes, CodeIndex& code, Architecture architecture)
      : processes_(processes),
        code_(code),
        unwinder_(code.rules(), architecture),
        live_(processes.memory()) {}

  BuiltStack build(const SampleEvent& sample);
  // Those of the sample that was built last, as run-time addresses: what an engine that unwinds itself would
  // have given.
  std::span<const std::uint64_t> addresses(const SampleEvent& sample);
  // One frame that says why a sample is counted and not looked into.
  BuiltStack build_marker(Loss loss);
  void forget_all() {
    outer_.clear();
    live_.code().forget_all();
  }
  // Generated code that no stack has led to since the last call.
  void forget_unused() { live_.code().forget_unused(); }
  // How often generated code was not read: its process had used up its share.
  [[nodiscard]] std::uint64_t code_refusals() const { return live_.code().refusals(); }
  void forget_thread(Tid tid) { outer_.erase(to_int(tid)); }

 private:
  void unwind(const SampleEvent& sample, const Process& process);
  void build_user_stack(const SampleEvent& sample);
  // From the addresses that the engine found itself.
  void take_user_chain(const SampleEvent& sample, const Process& process);
  void leave_library();
  bool is_own_beyond_budget(const SampleEvent& sample);
  OuterFrames* outer_frames(const SampleEvent& sample, bool is_truncated);

  ProcessTable& processes_;
  CodeIndex& code_;
  Unwinder unwinder_;
  LiveMemory live_;
  Stack stack_;
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> addresses_;
  absl::flat_hash_map<std::int32_t, OuterFrames> outer_;  // threads that have had deep stacks
  Nanoseconds own_second_{};  // in which this many stacks of the profiler itself were unwound
  std::uint32_t own_stacks_ = 0;
};

}  // namespace ddprof
