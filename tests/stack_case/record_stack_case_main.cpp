// record_stack_case RECORDING FOLDER: makes a stack case of the first sample with four frames or more in a
// recording that record_events made.
#include <cstdio>
#include <deque>
#include <string>

#include "collect/replay/replay_engine.hpp"
#include "process/process_table.hpp"
#include "stack_case.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

class StackCaseRecorder {
 public:
  void handle(const MapEvent& event) {
    if (event.is_executable)
      processes_.map(
          event.pid, event.start, event.length, event.file_offset,
          {std::string(event.path), event.device_major, event.device_minor, event.inode, event.build_id});
  }
  void handle(const ForkEvent& event) {
    processes_.fork(event.pid, event.parent_pid, event.tid, event.parent_tid);
  }
  void handle(const CommEvent& event) { processes_.rename(event.pid, event.tid, event.comm, event.is_exec); }
  void handle(const SampleEvent& sample) {
    if (recorded_ || !sample.has_registers) return;
    const StackCopy copy{
        {sample.registers.sp}, sample.stack, sample.stack.size() >= sample.stack_requested, sample.time};
    RuleDictionary rules;
    std::deque<UnwindTable> tables;
    const ModuleMap modules = modules_of(sample.pid, rules, tables);
    auto recorded = record_stack_case({.registers = sample.registers,
                                       .copy = copy,
                                       .modules = modules,
                                       .rules = rules,
                                       .describe = [&](FileId id) { return describe(id); }});
    constexpr std::size_t kWorthRecording = 4;
    if (recorded && recorded->frames.size() >= kWorthRecording) recorded_ = *std::move(recorded);
  }
  void handle(const auto&) {}

  Result<void> write(const std::string& folder) const {
    if (!recorded_) return make_error(ErrorCode::not_found, "record stack: no sample has four frames");
    return write_stack_case(folder, *recorded_);
  }

 private:
  ModuleMap modules_of(Pid pid, RuleDictionary& rules, std::deque<UnwindTable>& tables) {
    ModuleMap modules;
    const Process* process = processes_.find(pid);
    if (process == nullptr) return modules;
    for (const CodeMapping& mapping : process->space->mappings()) {
      Module module{mapping.start, mapping.end, mapping.bias, nullptr, mapping.file};
      if (const auto& file = files_.file(mapping.file); file && file->elf) {
        module.table = &tables.emplace_back(compile_unwind_table(*file->elf, rules));
        module.entry = file->elf->entry();
        const auto image = file->elf->image();
        if (mapping.file_offset < image.size())
          module.code = image.subspan(
              mapping.file_offset,
              std::min<std::size_t>(mapping.end - mapping.start, image.size() - mapping.file_offset));
      }
      modules.add(module);
    }
    return modules;
  }

  std::pair<std::string, BuildId> describe(FileId id) const {
    const auto& file = files_.file(id);
    return file ? std::pair(file->base_name(), file->build_id)
                : std::pair(std::string("anonymous"), BuildId());
  }

  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  ProcessTable processes_{files_};
  std::optional<StackCase> recorded_;
};

Result<void> record(const std::string& recording, const std::string& folder) {
  const EngineOptions options{.events = {default_cpu_event()}, .source = recording};
  const auto collector = TRY(ReplayEngine().open(Target(), options));
  StackCaseRecorder recorder;
  const EventHandler dispatch = [&](const CollectorEvent& event) {
    std::visit([&](const auto& known) { recorder.handle(known); }, event);
  };
  while (!collector->is_finished()) TRY(collector->collect({}, dispatch));
  return recorder.write(folder);
}

}  // namespace
}  // namespace ddprof

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto recorded = ddprof::record(argv[1], argv[2]);
  if (!recorded.ok()) std::fprintf(stderr, "record_stack_case: %s\n", recorded.error().message.c_str());
  return recorded.ok() ? 0 : 1;
}
