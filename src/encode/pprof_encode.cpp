#include <protozero/pbf_writer.hpp>

#include "encode/escaped_text.hpp"
#include "encode/pprof.hpp"
#include "encode/pprof_sample.hpp"
#include "proto/pprof_fields.hpp"

namespace ddprof {

namespace {

using protozero::pbf_writer;
namespace field = pprof_field;

// proto3 leaves zeros out.
void add_number(pbf_writer& message, std::uint32_t number, std::uint64_t value) {
  if (value != 0) message.add_uint64(number, value);
}

// Negative numbers take ten bytes, as their two's complement.
void add_signed(pbf_writer& message, std::uint32_t number, std::int64_t value) {
  add_number(message, number, static_cast<std::uint64_t>(value));
}

void write_value_type(pbf_writer& profile, std::uint32_t number, const ValueType& value_type) {
  pbf_writer message(profile, number);
  // Written even when it is zero: protozero leaves empty messages out, and a column may not get lost.
  message.add_uint64(field::kType, value_type.type);
  add_number(message, field::kUnit, value_type.unit);
}

void write_mapping(pbf_writer& profile, const ProfileMapping& mapping, std::uint64_t id) {
  pbf_writer message(profile, field::kMapping);
  add_number(message, field::kMappingId, id);
  add_number(message, field::kMappingStart, mapping.start.value);
  add_number(message, field::kMappingLimit, mapping.limit.value);
  add_number(message, field::kMappingOffset, mapping.file_offset);
  add_number(message, field::kMappingPath, mapping.path);
  add_number(message, field::kMappingBuildId, mapping.build_id);
  add_number(message, field::kMappingHasFunctions, mapping.has_functions ? 1 : 0);
  add_number(message, field::kMappingHasFilenames, mapping.has_filenames ? 1 : 0);
  add_number(message, field::kMappingHasLines, mapping.has_lines ? 1 : 0);
  add_number(message, field::kMappingHasInlines, mapping.has_inlines ? 1 : 0);
}

void write_location(pbf_writer& profile, const ProfileLocation& location, std::uint64_t id) {
  pbf_writer message(profile, field::kLocation);
  add_number(message, field::kLocationId, id);
  if (location.mapping != kNoMapping)
    message.add_uint64(field::kLocationMapping, std::uint64_t{location.mapping} + 1);
  add_number(message, field::kLocationAddress, location.address.value);
  for (const ProfileLine& line : location.lines) {
    pbf_writer part(message, field::kLocationLine);
    add_number(part, field::kLineFunction, std::uint64_t{line.function} + 1);
    add_signed(part, field::kLineNumber, line.line);
    add_signed(part, field::kLineColumn, line.column);
  }
}

void write_function(pbf_writer& profile, const ProfileFunction& function, std::uint64_t id) {
  pbf_writer message(profile, field::kFunction);
  add_number(message, field::kFunctionId, id);
  add_number(message, field::kFunctionName, function.name);
  add_number(message, field::kFunctionSystemName, function.system_name);
  add_number(message, field::kFunctionFile, function.file);
  add_signed(message, field::kFunctionStartLine, function.start_line);
}

void write_string(pbf_writer& profile, const std::string& text) {
  // "" at 0 must be there in full.
  if (is_utf8(text)) {
    profile.add_string(field::kStringTable, text);
  } else {
    profile.add_string(field::kStringTable, to_utf8(text));
  }
}

}  // namespace

std::string encode_pprof(const Profile& profile) {
  return encode_pprof(profile, [&profile](PprofSampleWriter& writer) {
    writer.reserve_for(profile.samples);
    for (const ProfileSample& sample : profile.samples) writer.write(sample);
  });
}

std::string encode_pprof(const Profile& profile,
                         const std::function<void(PprofSampleWriter&)>& write_samples) {
  std::string bytes;
  pbf_writer message(bytes);
  std::uint64_t id = 0;
  for (const ValueType& type : profile.value_types) write_value_type(message, field::kSampleType, type);
  PprofSampleWriter samples(bytes, profile.time_label);
  write_samples(samples);
  for (const ProfileMapping& mapping : profile.mappings) write_mapping(message, mapping, ++id);
  id = 0;
  for (const ProfileLocation& location : profile.locations) write_location(message, location, ++id);
  id = 0;
  for (const ProfileFunction& function : profile.functions) write_function(message, function, ++id);
  for (const std::string& text : profile.strings) write_string(message, text);
  add_signed(message, field::kTimeNanos, profile.time_ns);
  add_signed(message, field::kDurationNanos, profile.duration_ns);
  if (profile.period_type.type != 0) write_value_type(message, field::kPeriodType, profile.period_type);
  add_signed(message, field::kPeriod, profile.period);
  message.add_packed_int64(field::kComment, profile.comments.begin(), profile.comments.end());
  add_number(message, field::kDefaultSampleType, profile.default_value_type);
  add_number(message, field::kDocUrl, profile.doc_url);
  return bytes;
}

}  // namespace ddprof
