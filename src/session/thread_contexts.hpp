#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/thread_variable.hpp"
#include "collect/collector.hpp"
#include "process/process_context.hpp"
#include "process/process_table.hpp"
#include "process/thread_context.hpp"
#include "profile/aggregator.hpp"

namespace ddprof {

// Finds out which processes publish what their threads do, tells the collector where they do it, and makes
// sense of what comes with their samples.
class ThreadContexts {
 public:
  // `source` is null where samples come without contexts.
  ThreadContexts(ThreadContextSource* source, ProcessTable& processes, FileRegistry& files)
      : source_(source), processes_(processes), files_(files) {}

  // What the sample's thread was doing; none: it did not say. A process is looked at because it has samples.
  std::optional<SampleContext> of(const SampleEvent& sample);
  // The process is another program now, or gone: what it had published means nothing any more.
  void forget(Pid pid);
  // Looks at the processes whose turn it is. Between samples.
  void look_around(Nanoseconds now);

 private:
  struct Publisher {
    std::optional<PublishedContext> published;
    ThreadVariable variable;
    Nanoseconds since{};  // what was read before was read in another place
    Nanoseconds next_look{};
    Nanoseconds wait{};
    bool has_samples = true;  // since the last look
  };

  void look_at(Pid pid, Publisher& publisher, Nanoseconds now);
  void read_again(Pid pid, Publisher& publisher);
  ThreadVariable find_variable(Pid pid, std::string_view name);

  ThreadContextSource* source_;
  ProcessTable& processes_;
  FileRegistry& files_;
  Nanoseconds next_look_{};
  absl::flat_hash_map<std::int32_t, Publisher> publishers_;  // by pid: all that have samples
};

// By what the process says its keys mean. Attributes without a key are left out, and so are those whose names
// mean something else to backends.
SampleContext to_sample_context(const ThreadContext& context, const std::vector<std::string>& keys);

}  // namespace ddprof
