#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/frame.hpp"
#include "export/destination.hpp"
#include "session/closed_period.hpp"
#include "session/frame_names.hpp"
#include "session/location_table.hpp"
#include "session/source_reader.hpp"

namespace ddprof {

struct NamerOptions {
  bool is_enabled = true;         // false: only the kernel's code has names
  bool has_inlined_calls = true;  // false: the function that the linker knows stands for all inlined into it
  std::string cache_folder;       // what is expensive to read is kept there for other runs; empty: nowhere
  std::chrono::milliseconds patience{10'000};  // for debug information: an export waits no longer for it
  FileGuard guard{};                           // for the files that are read
  unsigned rest = 0;  // as many times as long as they have worked, naming and sending rest: see Turns
};

// Where the names of one file came from, for people.
struct ModuleNaming {
  enum class Level : std::uint8_t { none, symbols, lines };

  std::string path;
  Level level = Level::none;
  std::string source;      // "debug information in /usr/lib/debug/…", "symbol table"
  std::string problem;     // what was refused or damaged; empty: nothing
  std::size_t unread = 0;  // addresses whose lines did not come in time
};

// "/usr/bin/app: debug information; 12 addresses without lines, which came too late".
std::string describe(const ModuleNaming& module);

// The moments of an aggregated profile, sorted by sample.
class MomentTable {
 public:
  explicit MomentTable(const AggregatedProfile& profile);

  // In the order in which they came, which is that of time.
  [[nodiscard]] std::span<const Nanoseconds> times(std::uint32_t sample) const {
    return std::span(times_).subspan(begins_[sample], begins_[sample + 1] - begins_[sample]);
  }

 private:
  std::vector<Nanoseconds> times_;
  std::vector<std::uint32_t> begins_;  // by sample, into times_
};

// The addresses of each file that may have debug information, hottest first.
std::vector<SourceReader::Wanted> wanted_sources(const ClosedPeriod& period);

// Turns a closed period into a batch of profiles, one of each kind: every distinct address is named once,
// after aggregation. Lives on the finishing thread; its caches outlive periods.
class Namer {
 public:
  explicit Namer(const NamerOptions& options);

  Batch name(const ClosedPeriod& period);
  // Of the files that the last period had samples in.
  [[nodiscard]] const std::vector<ModuleNaming>& modules() const { return modules_; }
  // What would give names to generated code of the last period, and whole stacks.
  [[nodiscard]] const std::vector<std::string>& hints() const { return hints_; }
  // Of the calling thread, and of the one that reads debug information for it.
  [[nodiscard]] Nanoseconds cpu_time();

 private:
  void read_sources(const ClosedPeriod& period);
  std::vector<std::uint32_t> add_locations(const ClosedPeriod& period, const ClosedPart& part,
                                           ProfileBuilder& builder);
  [[nodiscard]] std::vector<NamedCall> calls_of(const Frame& frame, const FrameNames::Name& name,
                                                const SourceReader::Known* known) const;
  void note_module(const ClosedPeriod& period, const Frame& frame, const FrameDescription& description,
                   const SourceReader::Known* known);
  void add_hints(const ClosedPeriod& period);

  NamerOptions options_;
  FrameNames names_;
  std::optional<SourceReader> sources_;  // none: disabled
  std::vector<ModuleNaming> modules_;
  std::vector<std::string> hints_;
  absl::flat_hash_map<std::uint32_t, std::size_t> module_of_file_;  // FileId -> position in modules_
};

}  // namespace ddprof
