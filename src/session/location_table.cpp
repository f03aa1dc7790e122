#include "session/location_table.hpp"

#include <algorithm>

namespace ddprof {

namespace {

void describe_mapping(ProfileMapping& mapping, const FrameDescription& description) {
  mapping.has_functions = description.is_symbol;
  mapping.has_filenames = std::any_of(description.calls.begin(), description.calls.end(),
                                      [](const NamedCall& call) { return !call.file.empty(); });
  mapping.has_lines = std::any_of(description.calls.begin(), description.calls.end(),
                                  [](const NamedCall& call) { return call.line != 0; });
  mapping.has_inlines = description.calls.size() > 1;
}

}  // namespace

LocationTable::LocationTable(const ClosedPeriod& period, ProfileBuilder& builder)
    : period_(period), builder_(builder) {
  for (std::size_t i = 0; i < period.mappings.size(); ++i) {
    by_file_[to_int(period.mappings[i].file)].push_back(i);
  }
}

void LocationTable::add_program(FileId program) {
  auto known = by_file_.find(to_int(program));
  if (known != by_file_.end()) add_user_mapping(period_.mappings[known->second.front()], {});
}

std::uint32_t LocationTable::add(const Frame& frame, const FrameDescription& description) {
  if (frame.kind == FrameKind::stopped || frame.kind == FrameKind::accounted)
    return builder_.add_named_location(description.calls.front().name);
  std::vector<ProfileLine> lines;
  for (const NamedCall& call : description.calls) {
    lines.push_back(
        {builder_.add_function(call.name, call.linker_name, call.file, call.start_line), call.line});
  }
  if (frame.kind == FrameKind::kernel)
    return builder_.add_location(add_kernel_mapping(description), {frame.address}, lines);
  const CodeMapping* mapping = find_mapping(frame);
  if (mapping == nullptr) return builder_.add_location(kNoMapping, {frame.address}, lines);
  const Address address = {frame.address + mapping->bias};
  return builder_.add_location(add_user_mapping(*mapping, description), address, lines);
}

const CodeMapping* LocationTable::find_mapping(const Frame& frame) const {
  auto known = by_file_.find(to_int(frame.file));
  if (known == by_file_.end()) return nullptr;
  for (std::size_t index : known->second) {
    if (period_.mappings[index].contains({frame.address + period_.mappings[index].bias}))
      return &period_.mappings[index];
  }
  return nullptr;
}

std::uint32_t LocationTable::add_user_mapping(const CodeMapping& mapping,
                                              const FrameDescription& description) {
  const CodeFile* file = period_.files[mapping.file].get();
  ProfileMapping out;
  out.start = mapping.start;
  out.limit = mapping.end;
  out.file_offset = mapping.file_offset;
  out.path = builder_.intern(file != nullptr ? file->path : "[unknown]");
  out.build_id = builder_.intern(file != nullptr ? file->build_id.hex() : "");
  describe_mapping(out, description);
  return builder_.add_mapping(out);
}

std::uint32_t LocationTable::add_kernel_mapping(const FrameDescription& description) {
  ProfileMapping out;
  out.start = {0xffff800000000000};
  out.limit = {0xffffffffffffffff};
  out.path = builder_.intern("[kernel.kallsyms]");
  describe_mapping(out, description);
  return builder_.add_mapping(out);
}

}  // namespace ddprof
