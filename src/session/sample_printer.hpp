#pragma once

#include <string>

#include "collect/collector.hpp"
#include "process/process_table.hpp"
#include "session/frame_names.hpp"
#include "session/stack_builder.hpp"

namespace ddprof {

// One sample as one line of text: "12.345678901 server/1234 worker/1240 cpu=1 10101010: leaf < caller <
// main".
std::string sample_line(const SampleEvent& sample, const BuiltStack& stack, const ProcessTable& processes,
                        const FileRegistry& files, FrameNames& names);

}  // namespace ddprof
