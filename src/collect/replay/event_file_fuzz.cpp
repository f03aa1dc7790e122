#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "collect/replay/replay_engine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto collector = ddprof::ReplayCollector::open(std::string(data, data + size), 2);
  if (!collector.ok()) return 0;
  ddprof::EventFileWriter writer;
  volatile std::size_t used = 0;
  // Everything that an event points to is read.
  (void)(*collector)->drain([&](const ddprof::CollectorEvent& event) {
    if (writer.bytes().size() < (std::size_t{1} << 20U)) writer.write(event);
  });
  used = used + writer.bytes().size();
  return 0;
}
