#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/output_file.hpp"
#include "collect/engines/engine_table.hpp"
#include "collect/replay/event_file.hpp"

// record_events ENGINE FILE PROGRAM ARGUMENT...: runs the program and writes what the engine collects of it,
// for `ddprof --engine replay:FILE`.

namespace ddprof {
namespace {

// A child that becomes the program once a byte is written to `start`.
pid_t fork_held(char** program, int& start) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char go = 0;
    if (::read(ends[0], &go, 1) == 1) {
      ::close(ends[0]);
      ::execvp(program[0], program);
    }
    ::_exit(127);
  }
  ::close(ends[0]);
  start = ends[1];
  return child;
}

Result<void> record(const std::string& name, const std::string& file, char** program) {
  int start = -1;
  const pid_t child = fork_held(program, start);
  if (child < 0) return make_error(ErrorCode::failed, "fork: no child");
  EngineOptions options{.events = {default_cpu_event()}};
  const ChosenEngine chosen = TRY(choose_engine(name));
  const auto collector = TRY(chosen.engine->open(Target::command(Pid{child}), options));
  if (::write(start, "g", 1) != 1) return make_error(ErrorCode::failed, "start the program");
  ::close(start);
  EventFileWriter writer;
  const EventHandler write = [&](const CollectorEvent& event) { writer.write(event); };
  const auto end_batch = [&] {
    if (auto total = collector->exact_total(0)) writer.write(RecordedTotal{0, *total});
    writer.write(RecordedBatchEnd());
  };
  while (!collector->is_finished()) {
    TRY(collector->collect(std::chrono::milliseconds(100), write));
    end_batch();
  }
  TRY(collector->drain(write));
  end_batch();
  ::waitpid(child, nullptr, 0);
  return write_output(file, writer.bytes());
}

}  // namespace
}  // namespace ddprof

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  auto recorded = ddprof::record(argv[1], argv[2], argv + 3);
  if (!recorded.ok()) std::fprintf(stderr, "record_events: %s\n", recorded.error().message.c_str());
  return recorded.ok() ? 0 : 1;
}
