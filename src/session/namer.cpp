#include "session/namer.hpp"

#include <string_view>
#include <utility>

#include "process/jit_files.hpp"
#include "profile/labels.hpp"
#include "profile/marker.hpp"
#include "profile/profile_builder.hpp"
#include "symbol/demangle.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxCachedNames = 200'000;
constexpr std::size_t kMaxSymbolBytes = 16U << 20U;

std::string readable_offset(const CodeFile* file, std::uint64_t address) {
  if (file == nullptr || file->kind == CodeFile::Kind::jit)
    return fmt::format("[anonymous code]+{:#x}", address);
  return fmt::format("{}+{:#x}", file->base_name(), address);
}

PerfMap read_perf_map(Pid pid) {
  constexpr std::size_t kMaxPerfMapBytes = 128U << 20U;
  const auto file = JitFile::open_perf_map(pid);
  if (!file) return {};
  const auto text = file->read_all(kMaxPerfMapBytes);
  return text ? PerfMap::parse(*text) : PerfMap{};
}

// Joins frames to a ProfileBuilder: locations once per distinct frame, mappings once per representative.
class LocationTable {
 public:
  LocationTable(const ClosedPeriod& period, ProfileBuilder& builder) : period_(period), builder_(builder) {
    for (std::size_t i = 0; i < period.mappings.size(); ++i) {
      by_file_[to_int(period.mappings[i].file)].push_back(i);
    }
  }

  std::uint32_t add(const Frame& frame, const Namer::Name& name) {
    ProfileLine line{builder_.add_function(name.readable, name.linker)};
    if (frame.kind == FrameKind::kernel)
      return builder_.add_location(kernel_mapping(name), {frame.address}, {&line, 1});
    if (frame.kind != FrameKind::user) return builder_.add_named_location(name.readable);
    const CodeMapping* mapping = find_mapping(frame);
    if (mapping == nullptr) return builder_.add_location(kNoMapping, {frame.address}, {&line, 1});
    Address address = {frame.address + mapping->bias};
    return builder_.add_location(user_mapping(*mapping, name), address, {&line, 1});
  }

 private:
  const CodeMapping* find_mapping(const Frame& frame) const {
    auto known = by_file_.find(to_int(frame.file));
    if (known == by_file_.end()) return nullptr;
    for (std::size_t index : known->second) {
      if (period_.mappings[index].contains({frame.address + period_.mappings[index].bias}))
        return &period_.mappings[index];
    }
    return nullptr;
  }

  std::uint32_t user_mapping(const CodeMapping& mapping, const Namer::Name& name) {
    const CodeFile* file = period_.files[to_int(mapping.file)].get();
    ProfileMapping out;
    out.start = mapping.start;
    out.limit = mapping.end;
    out.file_offset = mapping.file_offset;
    out.path = builder_.intern(file != nullptr ? file->path : "[unknown]");
    out.build_id = builder_.intern(file != nullptr ? file->build_id.hex() : "");
    out.has_functions = name.is_symbol;
    return builder_.add_mapping(out);
  }

  std::uint32_t kernel_mapping(const Namer::Name& name) {
    ProfileMapping out;
    out.start = {0xffff800000000000};
    out.limit = {0xffffffffffffffff};
    out.path = builder_.intern("[kernel.kallsyms]");
    out.has_functions = name.is_symbol;
    return builder_.add_mapping(out);
  }

  const ClosedPeriod& period_;
  ProfileBuilder& builder_;
  absl::flat_hash_map<std::uint32_t, std::vector<std::size_t>> by_file_;
};

}  // namespace

Namer::Symbols& Namer::symbols_of(FileId id, const CodeFile& file) {
  auto [entry, is_new] = symbols_.try_emplace(to_int(id));
  if (is_new && file.elf) {
    entry->second.table = SymbolTable::build(*file.elf);
    file.image.drop_pages();
  }
  if (is_new && file.kind == CodeFile::Kind::jit) entry->second.jit = read_perf_map(file.pid);
  return entry->second;
}

Namer::Name Namer::kernel_name(std::uint64_t address) {
  if (auto symbol = kernel_.find(address)) {
    std::string name(symbol->name);
    return {name, name, true};
  }
  std::string name = fmt::format("[kernel]+{:#x}", address);
  return {name, name};
}

Namer::Name Namer::user_name(const Frame& frame, const CodeFile* file) {
  if (is_enabled_ && file != nullptr) {
    Symbols& symbols = symbols_of(frame.file, *file);
    if (symbols.table) {
      if (auto symbol = symbols.table->find(frame.address))
        return {demangle(symbol->name), std::string(symbol->name), true};
    }
    if (symbols.jit) {
      if (auto symbol = symbols.jit->find(frame.address))
        return {std::string(symbol->name), std::string(symbol->name), true};
    }
  }
  std::string name = readable_offset(file, frame.address);
  return {name, name};
}

Namer::Name Namer::name(const Frame& frame, const CodeFile* file) {
  bool is_stable = file == nullptr || file->kind != CodeFile::Kind::jit;  // JIT code comes and goes
  if (is_stable) {
    if (auto known = names_.find(frame); known != names_.end()) return known->second;
  }
  Name name;
  switch (frame.kind) {
    case FrameKind::user:
      name = user_name(frame, file);
      break;
    case FrameKind::kernel:
      name = kernel_name(frame.address);
      break;
    default:
      name.readable = name.linker = marker_name(frame, file != nullptr ? file->base_name() : "");
  }
  if (is_stable) names_.emplace(frame, name);
  return name;
}

void Namer::trim_caches() {
  if (names_.size() > kMaxCachedNames) names_.clear();
  std::size_t bytes = 0;
  absl::erase_if(symbols_, [&](const auto& entry) {
    if (!entry.second.table) return true;  // a JIT's map is read anew
    bytes += entry.second.table->memory_bytes();
    return bytes > kMaxSymbolBytes;
  });
}

Profile Namer::name(const ClosedPeriod& period) {
  ProfileBuilder builder;
  LocationTable locations(period, builder);
  const AggregatedProfile& aggregated = period.profile;

  std::vector<std::uint32_t> location_of_frame;
  location_of_frame.reserve(aggregated.frames.size());
  for (const Frame& frame : aggregated.frames) {
    location_of_frame.push_back(locations.add(frame, name(frame, period.files[to_int(frame.file)].get())));
  }

  for (std::size_t i = 0; i < aggregated.samples.size(); ++i) {
    const auto& from = aggregated.samples[i];
    const ThreadKey thread = aggregated.threads[from.thread];
    const auto& labels = period.labels[from.thread];
    ProfileSample sample;
    for (std::uint32_t frame : aggregated.stack(from.stack))
      sample.locations.push_back(location_of_frame[frame]);
    auto values = aggregated.sample_values(i).first(period.visible_columns);
    sample.values.assign(values.begin(), values.end());
    sample.labels.push_back(builder.number_label(kThreadIdLabel, to_int(thread.tid)));
    sample.labels.push_back(builder.text_label(kThreadNameLabel, labels.thread));
    sample.labels.push_back(builder.number_label(kProcessIdLabel, to_int(thread.pid)));
    sample.labels.push_back(builder.text_label(kProcessNameLabel, labels.process));
    builder.add_sample(std::move(sample));
  }

  Profile& profile = builder.profile();
  for (std::uint32_t column = 0; column < period.visible_columns; ++column) {
    profile.value_types.push_back(
        builder.value_type(aggregated.columns[column].type, aggregated.columns[column].unit));
  }
  profile.period_type = builder.value_type(period.period_type, period.period_unit);
  profile.period = period.period;
  profile.default_value_type = builder.intern(period.default_column);
  profile.time_ns = period.unix_start.count();
  profile.duration_ns = (aggregated.end - aggregated.start).count();
  for (const std::string& comment : period.comments) profile.comments.push_back(builder.intern(comment));
  trim_caches();
  return std::move(builder).build();
}

}  // namespace ddprof
