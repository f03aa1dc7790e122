#include "session/namer.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/turns.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "session/generated_code.hpp"

namespace ddprof {

MomentTable::MomentTable(const AggregatedProfile& profile)
    : times_(profile.moments.size()), begins_(profile.samples.size() + 1) {
  for (const AggregatedProfile::Moment& moment : profile.moments) begins_[moment.sample + 1]++;
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<std::uint32_t> next = begins_;
  for (const AggregatedProfile::Moment& moment : profile.moments) times_[next[moment.sample]++] = moment.time;
}

namespace {

constexpr std::int64_t kMostEvents = std::numeric_limits<std::uint32_t>::max();

bool has_sources(const Frame& frame, const CodeFile* file) {
  return frame.kind == FrameKind::user && file != nullptr && file->kind == CodeFile::Kind::elf;
}

struct WeightedFrame {
  const Frame* frame = nullptr;
  std::int64_t weight = 0;  // how many samples passed through it
};

void add_weighted_frames(const ClosedPeriod& period, const AggregatedProfile& profile,
                         std::vector<WeightedFrame>& frames) {
  std::vector<std::int64_t> weights(profile.frames.size());
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.sample_values(i).front();
    for (std::uint32_t frame : profile.stack(profile.samples[i].stack)) weights[frame] += value;
  }
  for (std::size_t at = 0; at < profile.frames.size(); ++at) {
    const Frame& frame = profile.frames[at];
    if (has_sources(frame, period.files[frame.file].get())) frames.push_back({&frame, weights[at]});
  }
}

}  // namespace

std::vector<SourceReader::Wanted> wanted_sources(const ClosedPeriod& period) {
  std::vector<WeightedFrame> frames;
  for (const ClosedPart& part : period.parts) add_weighted_frames(period, part.profile, frames);
  std::sort(frames.begin(), frames.end(),
            [](const WeightedFrame& left, const WeightedFrame& right) { return left.weight > right.weight; });
  absl::flat_hash_map<std::uint32_t, std::size_t> position;  // by FileId
  absl::flat_hash_set<Frame> known;                          // several parts may have a frame
  std::vector<SourceReader::Wanted> wanted;
  for (const auto& [frame, weight] : frames) {
    auto [entry, is_new] = position.try_emplace(to_int(frame->file), wanted.size());
    if (is_new) wanted.push_back({frame->file, period.files[frame->file], {}, 0});
    wanted[entry->second].weight += weight;
    if (known.insert(*frame).second) wanted[entry->second].addresses.push_back(frame->address);
  }
  return wanted;
}

namespace {

// What the processes run that have samples, the one with the greatest value first.
std::vector<FileId> programs_by_value(const ClosedPart& part) {
  const AggregatedProfile& profile = part.profile;
  std::size_t column = 0;
  for (std::size_t i = 0; i < part.visible_columns; ++i)
    if (profile.columns[i].type == part.default_column) column = i;
  absl::flat_hash_map<std::uint32_t, std::int64_t> values;  // by FileId
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const FileId program = part.labels[profile.samples[i].thread].program;
    if (program != FileId::none) values[to_int(program)] += profile.sample_values(i)[column];
  }
  std::vector<FileId> programs;
  for (const auto& entry : values) programs.push_back(FileId{entry.first});
  std::sort(programs.begin(), programs.end(), [&](FileId left, FileId right) {
    return std::pair(-values[to_int(left)], left) < std::pair(-values[to_int(right)], right);
  });
  return programs;
}

std::vector<ProfileLabel> labels_of(ThreadKey thread, const TaskNames& names, ProfileBuilder& builder) {
  std::vector<ProfileLabel> labels = {builder.number_label(kThreadIdLabel, to_int(thread.tid)),
                                      builder.text_label(kThreadNameLabel, names.thread),
                                      builder.number_label(kProcessIdLabel, to_int(thread.pid)),
                                      builder.text_label(kProcessNameLabel, names.process)};
  if (names.namespace_pid)
    labels.push_back(builder.number_label(kNamespacePidLabel, to_int(*names.namespace_pid)));
  const auto add_text = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) labels.push_back(builder.text_label(key, text));
  };
  add_text(kServiceLabel, names.service);
  if (names.confinement) add_text(kContainerIdLabel, names.confinement->container_id);
  if (names.confinement) add_text(kCgroupLabel, names.confinement->cgroup);
  return labels;
}

// What a thread told of what it was doing.
std::vector<ProfileLabel> labels_of(const SampleContext& context, ProfileBuilder& builder) {
  std::vector<ProfileLabel> labels;
  const auto add_number = [&](std::string_view key, std::uint64_t number) {
    labels.push_back(builder.number_label(key, static_cast<std::int64_t>(number)));
  };
  if (context.span_id != 0) add_number(kSpanIdLabel, context.span_id);
  if (context.local_root_span_id) add_number(kLocalRootSpanIdLabel, *context.local_root_span_id);
  if (!context.endpoint.empty()) labels.push_back(builder.text_label(kTraceEndpointLabel, context.endpoint));
  if (const std::string trace = trace_id_text(context); !trace.empty())
    labels.push_back(builder.text_label(kTraceIdLabel, trace));
  std::vector<StringIndex>& keys = builder.profile().context_keys;
  for (const auto& [key, text] : context.others) {
    labels.push_back(builder.text_label(key, text));
    if (std::find(keys.begin(), keys.end(), labels.back().key) == keys.end())
      keys.push_back(labels.back().key);
  }
  return labels;
}

// When the events of sample `index` were, if there is a timeline.
void add_times(const ClosedPeriod& period, const MomentTable& moments, std::uint32_t index,
               ProfileSample& sample) {
  const std::span<const Nanoseconds> times = moments.times(index);
  if (times.empty()) return;
  sample.times.reserve(times.size());
  for (const Nanoseconds time : times)
    sample.times.push_back((period.times.unix_start + (time - period.times.start)).count());
  const std::int64_t counted = sample.values.front();
  sample.events =
      static_cast<std::uint32_t>(std::clamp(counted, static_cast<std::int64_t>(times.size()), kMostEvents));
}

void add_samples(const ClosedPeriod& period, const ClosedPart& part,
                 std::span<const std::uint32_t> location_of_frame, ProfileBuilder& builder) {
  const AggregatedProfile& aggregated = part.profile;
  const MomentTable moments(aggregated);
  if (!aggregated.moments.empty())
    builder.profile().time_label = builder.number_label(kEndTimestampLabel, 0, "nanoseconds");
  std::vector<std::vector<ProfileLabel>> labels;
  for (std::size_t thread = 0; thread < aggregated.threads.size(); ++thread)
    labels.push_back(labels_of(aggregated.threads[thread], part.labels[thread], builder));
  std::vector<std::vector<ProfileLabel>> context_labels;
  for (const SampleContext& context : aggregated.contexts)
    context_labels.push_back(labels_of(context, builder));
  for (std::uint32_t i = 0; i < aggregated.samples.size(); ++i) {
    const auto& from = aggregated.samples[i];
    ProfileSample sample;
    const auto stack = aggregated.stack(from.stack);
    sample.locations.reserve(stack.size());
    for (std::uint32_t frame : stack) sample.locations.push_back(location_of_frame[frame]);
    const auto values = aggregated.sample_values(i).first(part.visible_columns);
    sample.values.assign(values.begin(), values.end());
    sample.labels = labels[from.thread];
    sample.process = part.processes[from.thread];
    if (from.context != 0) {
      const auto& more = context_labels[from.context - 1];
      sample.labels.insert(sample.labels.end(), more.begin(), more.end());
    }
    add_times(period, moments, i, sample);
    builder.add_sample(std::move(sample));
    rest_point_among_many();
  }
}

void add_header(const ClosedPeriod& period, const ClosedPart& part, ProfileBuilder& builder) {
  Profile& profile = builder.profile();
  const AggregatedProfile& aggregated = part.profile;
  for (std::uint32_t column = 0; column < part.visible_columns; ++column) {
    profile.value_types.push_back(
        builder.value_type(aggregated.columns[column].type, aggregated.columns[column].unit));
  }
  profile.period_type = builder.value_type(part.period_type, part.period_unit);
  profile.period = part.period;
  profile.default_value_type = builder.intern(part.default_column);
  profile.time_ns = period.times.unix_start.count();
  profile.duration_ns = (period.times.end - period.times.start).count();
  for (const std::string& comment : period.comments) profile.comments.push_back(builder.intern(comment));
}

}  // namespace

std::string describe(const ModuleNaming& module) {
  std::string text = module.path + ": " + (module.source.empty() ? "no names" : module.source);
  if (module.unread > 0)
    text += fmt::format("; {} addresses without lines, which came too late", module.unread);
  if (!module.problem.empty()) text += "; " + module.problem;
  return text;
}

Namer::Namer(const NamerOptions& options)
    : options_(options), names_(options.is_enabled, options.cache_folder, options.guard) {
  if (options.is_enabled) sources_.emplace(options.cache_folder, options.guard);
}

Nanoseconds Namer::cpu_time() {
  return thread_cpu_now() + (sources_ ? sources_->cpu_time() : Nanoseconds(0));
}

void Namer::read_sources(const ClosedPeriod& period) {
  const bool has_samples = std::any_of(period.parts.begin(), period.parts.end(),
                                       [](const ClosedPart& part) { return !part.profile.samples.empty(); });
  if (!sources_ || !has_samples) return;
  sources_->read(wanted_sources(period), std::chrono::steady_clock::now() + options_.patience);
}

std::vector<NamedCall> Namer::calls_of(const Frame& frame, const FrameNames::Name& name,
                                       const SourceReader::Known* known) const {
  std::vector<NamedCall> calls;
  if (known != nullptr && frame.kind == FrameKind::user) {
    calls = known->find(frame.file, frame.address).value_or(std::vector<NamedCall>());
  }
  if (!options_.has_inlined_calls && calls.size() > 1) calls.erase(calls.begin(), calls.end() - 1);
  if (calls.empty()) calls.emplace_back();
  // The symbol table knows parts of functions (".cold", ".part.0") that debug information does not tell
  // apart.
  NamedCall& outermost = calls.back();
  if (name.is_symbol || outermost.name.empty()) {
    outermost.name = name.readable;
    outermost.linker_name = name.linker;
  }
  if (outermost.file.empty() && !name.file.empty()) {
    outermost.file = name.file;
    outermost.line = name.line;
  }
  return calls;
}

void Namer::note_module(const ClosedPeriod& period, const Frame& frame, const FrameDescription& description,
                        const SourceReader::Known* known) {
  const CodeFile* file = period.files[frame.file].get();
  if (frame.kind != FrameKind::user || file == nullptr) return;
  auto [entry, is_new] = module_of_file_.try_emplace(to_int(frame.file), modules_.size());
  if (is_new) {
    const auto source = known != nullptr ? known->source(frame.file) : SourceReader::Source{};
    modules_.push_back(
        {file->path, ModuleNaming::Level::none, source.description, source.problem, source.unread});
    if (file->kind == CodeFile::Kind::unopened) modules_.back().problem = file->problem;
    if (modules_.back().problem.empty()) modules_.back().problem = names_.problem(frame.file);
  }
  ModuleNaming& module = modules_[entry->second];
  const bool has_lines = std::any_of(description.calls.begin(), description.calls.end(),
                                     [](const NamedCall& call) { return call.line != 0; });
  if (has_lines) module.level = ModuleNaming::Level::lines;
  if (description.is_symbol && module.level == ModuleNaming::Level::none)
    module.level = ModuleNaming::Level::symbols;
  if (description.is_symbol && module.source.empty())
    module.source = file->kind == CodeFile::Kind::jit ? "the list of a JIT compiler" : "symbol table";
}

std::vector<std::uint32_t> Namer::add_locations(const ClosedPeriod& period, const ClosedPart& part,
                                                ProfileBuilder& builder) {
  LocationTable locations(period, builder);
  for (const FileId program : programs_by_value(part)) locations.add_program(program);
  names_.name_all(part.profile.frames, period.files);  // before anything is locked
  std::optional<SourceReader::Known> known;
  if (sources_) known.emplace(sources_->known());
  const SourceReader::Known* sources = known ? &*known : nullptr;
  std::vector<std::uint32_t> location_of_frame;
  location_of_frame.reserve(part.profile.frames.size());
  for (const Frame& frame : part.profile.frames) {
    const FrameNames::Name& name = names_.name(frame, period.files[frame.file].get());
    const std::vector<NamedCall> calls = calls_of(frame, name, sources);
    const FrameDescription description{calls, name.is_symbol || calls.size() > 1 || calls.back().line != 0};
    location_of_frame.push_back(locations.add(frame, description));
    note_module(period, frame, description, sources);
  }
  return location_of_frame;
}

void Namer::add_hints(const ClosedPeriod& period) {
  std::vector<GeneratedCodeUse> uses = generated_code_in(period);
  for (GeneratedCodeUse& use : uses) {
    use.has_names = std::none_of(module_of_file_.begin(), module_of_file_.end(), [&](const auto& entry) {
      const auto& file = period.files[static_cast<FileId>(entry.first)];
      return file->kind == CodeFile::Kind::jit && file->pid == use.pid &&
             modules_[entry.second].level == ModuleNaming::Level::none;
    });
  }
  hints_ = options_.is_enabled ? generated_code_hints(uses) : std::vector<std::string>();
}

Batch Namer::name(const ClosedPeriod& period) {
  modules_.clear();
  module_of_file_.clear();
  read_sources(period);
  names_.use_generated_code(period.files, period.mappings);
  std::vector<ProfileBuilder> builders(period.parts.size());
  for (std::size_t at = 0; at < builders.size(); ++at) {
    const ClosedPart& part = period.parts[at];
    add_samples(period, part, add_locations(period, part, builders[at]), builders[at]);
    add_header(period, part, builders[at]);
  }
  add_hints(period);
  Batch batch{.sequence = period.times.sequence,
              .is_last = period.is_last,
              .start = period.times.unix_start,
              .end = period.times.unix_start + (period.times.end - period.times.start),
              .processes = period.processes,
              .target = period.target};
  for (std::size_t at = 0; at < builders.size(); ++at) {
    for (const ModuleNaming& module : modules_)
      builders[at].profile().comments.push_back(builders[at].intern("names: " + describe(module)));
    for (const std::string& hint : hints_)
      builders[at].profile().comments.push_back(builders[at].intern("hint: " + hint));
    batch.parts.push_back({period.parts[at].kind, std::move(builders[at]).build()});
  }
  names_.trim(period.files);
  if (sources_) sources_->forget_except(period.files);
  return batch;
}

}  // namespace ddprof
