#include "session/sample_printer.hpp"

namespace ddprof {

std::string sample_line(const SampleEvent& sample, const BuiltStack& stack, const ProcessTable& processes,
                        const FileRegistry& files, FrameNames& names) {
  const Process* process = processes.find(sample.pid);
  std::string line = fmt::format(
      "{:.9f} {}/{} {}/{} cpu={} {}:", static_cast<double>(sample.time.count()) / 1e9,
      process != nullptr ? process->name : "?", to_int(sample.pid),
      processes.thread_name(sample.pid, sample.tid), to_int(sample.tid), sample.cpu, sample.value);
  const char* separator = " ";
  for (const Frame& frame : stack.frames) {
    line += separator + names.name(frame, files.file(frame.file).get()).readable;
    separator = " < ";
  }
  return line + "\n";
}

}  // namespace ddprof
