#include <absl/container/flat_hash_map.h>

#include <limits>
#include <optional>
#include <string_view>

#include "encode/compression.hpp"
#include "encode/pprof.hpp"
#include "proto/pprof_fields.hpp"
#include "proto/wire_reader.hpp"

// Fields may come in any order and refer to what comes later, so the message is walked twice: strings,
// functions, mappings and columns first, then samples; locations wait for the end of the first walk. Walking
// past a field costs next to nothing. Ids are replaced by indices on the way. What Profile has no place for
// (drop_frames, folded locations) is skipped.

namespace ddprof {

namespace {

namespace field = pprof_field;

// From the ids of a message to our indices. Ids are any numbers, but nearly every writer counts from 1: those
// are found in our own order, without a look at anything.
class IdMap {
 public:
  static constexpr std::size_t kBytesPerId = sizeof(std::uint64_t) + sizeof(std::uint32_t);

  // The next index gets this id; false when the id is taken.
  bool add(std::uint64_t id) {
    const std::uint32_t index = size_++;
    if (id == index + std::uint64_t{1} && others_.empty()) return counted_ = size_, true;
    if (id <= counted_) return false;
    return others_.emplace(id, index).second;
  }
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t id) const {
    if (id - 1 < counted_) return static_cast<std::uint32_t>(id - 1);
    const auto found = others_.find(id);
    return found == others_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::uint32_t size_ = 0;
  std::uint32_t counted_ = 0;  // ids up to this one are their index plus one
  absl::flat_hash_map<std::uint64_t, std::uint32_t> others_;
};

class Decoder {
 public:
  Decoder(std::string_view message, std::size_t memory_bytes)
      : message_(message), memory_left_(memory_bytes) {}

  Result<Profile> decode() &&;

 private:
  template <typename Visit>
  void walk(std::string_view message, Visit&& visit);
  void walk_tables();
  void walk_samples();

  void read_string(std::string_view bytes);
  void read_mapping(std::string_view bytes);
  void read_function(std::string_view bytes);
  void read_locations();
  void read_location(std::string_view bytes);
  void read_sample(std::string_view bytes);
  ValueType read_value_type(std::string_view bytes);
  ProfileLine read_line(std::string_view bytes);
  ProfileLabel read_label(std::string_view bytes);
  bool read_scalar(WireReader& reader);

  StringIndex read_string_index(WireReader& reader);
  void add_id(IdMap& ids, std::uint64_t id, const char* what);
  std::uint32_t find_id(const IdMap& ids, std::uint64_t id, const char* what);
  void check_strings();
  void charge(std::size_t bytes);
  void fail(std::string reason) {
    if (!problem_) problem_ = std::move(reason);
  }

  std::string_view message_;
  std::size_t memory_left_;
  Profile profile_;
  IdMap mappings_, functions_, locations_;
  ProfileSample
      scratch_;  // copied when it is complete: a sample's vectors are then allocated once, at their size
  std::size_t sample_count_ = 0;
  std::vector<std::string_view> location_messages_;  // read when all functions and mappings are known
  std::uint64_t greatest_string_ = 0;                // checked when the whole table is known
  std::optional<std::string> problem_;
};

// Visits each field until one fails; `visit` says whether it read the field.
template <typename Visit>
void Decoder::walk(std::string_view message, Visit&& visit) {
  WireReader reader(message);
  while (!problem_ && reader.next()) {
    if (!visit(reader)) reader.skip();
  }
  if (reader.is_failed()) fail("malformed protobuf");
}

void Decoder::charge(std::size_t bytes) {
  if (bytes > memory_left_) return fail("too large");
  memory_left_ -= bytes;
}

StringIndex Decoder::read_string_index(WireReader& reader) {
  const std::uint64_t index = reader.varint();
  greatest_string_ = std::max(greatest_string_, index);
  return static_cast<StringIndex>(index);
}

void Decoder::add_id(IdMap& ids, std::uint64_t id, const char* what) {
  charge(IdMap::kBytesPerId);
  if (id == 0) return fail(fmt::format("a {} has id 0", what));
  if (!ids.add(id)) fail(fmt::format("{} id {} is used twice", what, id));
}

std::uint32_t Decoder::find_id(const IdMap& ids, std::uint64_t id, const char* what) {
  if (const std::optional<std::uint32_t> index = ids.find(id)) return *index;
  fail(fmt::format("no {} has id {}", what, id));
  return 0;
}

void Decoder::read_string(std::string_view bytes) {
  charge(sizeof(std::string) + bytes.size());
  if (!problem_) profile_.strings.emplace_back(bytes);
}

ValueType Decoder::read_value_type(std::string_view bytes) {
  ValueType type;
  charge(sizeof(type));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kType:
        type.type = read_string_index(reader);
        return true;
      case field::kUnit:
        type.unit = read_string_index(reader);
        return true;
      default:
        return false;
    }
  });
  return type;
}

void Decoder::read_mapping(std::string_view bytes) {
  ProfileMapping mapping;
  std::uint64_t id = 0;
  charge(sizeof(mapping));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kMappingId:
        id = reader.varint();
        return true;
      case field::kMappingStart:
        mapping.start = {reader.varint()};
        return true;
      case field::kMappingLimit:
        mapping.limit = {reader.varint()};
        return true;
      case field::kMappingOffset:
        mapping.file_offset = reader.varint();
        return true;
      case field::kMappingPath:
        mapping.path = read_string_index(reader);
        return true;
      case field::kMappingBuildId:
        mapping.build_id = read_string_index(reader);
        return true;
      case field::kMappingHasFunctions:
        mapping.has_functions = reader.varint() != 0;
        return true;
      case field::kMappingHasFilenames:
        mapping.has_filenames = reader.varint() != 0;
        return true;
      case field::kMappingHasLines:
        mapping.has_lines = reader.varint() != 0;
        return true;
      case field::kMappingHasInlines:
        mapping.has_inlines = reader.varint() != 0;
        return true;
      default:
        return false;
    }
  });
  if (!problem_) add_id(mappings_, id, "mapping");
  if (!problem_) profile_.mappings.push_back(mapping);
}

void Decoder::read_function(std::string_view bytes) {
  ProfileFunction function;
  std::uint64_t id = 0;
  charge(sizeof(function));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kFunctionId:
        id = reader.varint();
        return true;
      case field::kFunctionName:
        function.name = read_string_index(reader);
        return true;
      case field::kFunctionSystemName:
        function.system_name = read_string_index(reader);
        return true;
      case field::kFunctionFile:
        function.file = read_string_index(reader);
        return true;
      case field::kFunctionStartLine:
        function.start_line = static_cast<std::int64_t>(reader.varint());
        return true;
      default:
        return false;
    }
  });
  if (!problem_) add_id(functions_, id, "function");
  if (!problem_) profile_.functions.push_back(function);
}

ProfileLine Decoder::read_line(std::string_view bytes) {
  ProfileLine line;
  std::uint64_t function = 0;
  charge(sizeof(line));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kLineFunction:
        function = reader.varint();
        return true;
      case field::kLineNumber:
        line.line = static_cast<std::int64_t>(reader.varint());
        return true;
      case field::kLineColumn:
        line.column = static_cast<std::int64_t>(reader.varint());
        return true;
      default:
        return false;
    }
  });
  if (!problem_) line.function = find_id(functions_, function, "function");
  return line;
}

void Decoder::read_location(std::string_view bytes) {
  ProfileLocation location;
  std::uint64_t id = 0, mapping = 0;
  charge(sizeof(location));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kLocationId:
        id = reader.varint();
        return true;
      case field::kLocationMapping:
        mapping = reader.varint();
        return true;
      case field::kLocationAddress:
        location.address = {reader.varint()};
        return true;
      case field::kLocationLine:
        location.lines.push_back(read_line(reader.bytes()));
        return true;
      default:
        return false;
    }
  });
  if (!problem_ && mapping != 0) location.mapping = find_id(mappings_, mapping, "mapping");
  if (!problem_) add_id(locations_, id, "location");
  if (!problem_) profile_.locations.push_back(std::move(location));
}

ProfileLabel Decoder::read_label(std::string_view bytes) {
  ProfileLabel label;
  charge(sizeof(label));
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kLabelKey:
        label.key = read_string_index(reader);
        return true;
      case field::kLabelText:
        label.text = read_string_index(reader);
        return true;
      case field::kLabelNumber:
        label.number = static_cast<std::int64_t>(reader.varint());
        return true;
      case field::kLabelUnit:
        label.unit = read_string_index(reader);
        return true;
      default:
        return false;
    }
  });
  return label;
}

void Decoder::read_sample(std::string_view bytes) {
  ProfileSample& sample = scratch_;
  sample.locations.clear();
  sample.values.clear();
  sample.labels.clear();
  charge(sizeof(sample));
  const auto add_location = [&](std::uint64_t id) {
    charge(sizeof(std::uint32_t));
    if (!problem_) sample.locations.push_back(find_id(locations_, id, "location"));
  };
  const auto add_value = [&](std::uint64_t value) {
    charge(sizeof(std::int64_t));
    if (!problem_) sample.values.push_back(static_cast<std::int64_t>(value));
  };
  walk(bytes, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kSampleLocationId:
        reader.varints(add_location);
        return true;
      case field::kSampleValue:
        reader.varints(add_value);
        return true;
      case field::kSampleLabel:
        sample.labels.push_back(read_label(reader.bytes()));
        return true;
      default:
        return false;
    }
  });
  if (sample.values.size() != profile_.value_types.size()) {
    fail(fmt::format("a sample has {} values for {} columns", sample.values.size(),
                     profile_.value_types.size()));
  }
  if (!problem_) profile_.samples.push_back(sample);
}

void Decoder::walk_tables() {
  profile_.strings.clear();
  walk(message_, [&](WireReader& reader) {
    switch (reader.field()) {
      case field::kStringTable:
        read_string(reader.bytes());
        return true;
      case field::kSampleType:
        profile_.value_types.push_back(read_value_type(reader.bytes()));
        return true;
      case field::kMapping:
        read_mapping(reader.bytes());
        return true;
      case field::kFunction:
        read_function(reader.bytes());
        return true;
      case field::kLocation:
        charge(sizeof(std::string_view));
        if (!problem_) location_messages_.push_back(reader.bytes());
        return true;
      case field::kSample:
        ++sample_count_;
        return false;
      default:
        return false;
    }
  });
}

void Decoder::read_locations() {
  for (std::string_view location : location_messages_) {
    if (!problem_) read_location(location);
  }
}

bool Decoder::read_scalar(WireReader& reader) {
  const auto add_comment = [&](std::uint64_t index) {
    charge(sizeof(StringIndex));
    greatest_string_ = std::max(greatest_string_, index);
    if (!problem_) profile_.comments.push_back(static_cast<StringIndex>(index));
  };
  switch (reader.field()) {
    case field::kTimeNanos:
      profile_.time_ns = static_cast<std::int64_t>(reader.varint());
      return true;
    case field::kDurationNanos:
      profile_.duration_ns = static_cast<std::int64_t>(reader.varint());
      return true;
    case field::kPeriodType:
      profile_.period_type = read_value_type(reader.bytes());
      return true;
    case field::kPeriod:
      profile_.period = static_cast<std::int64_t>(reader.varint());
      return true;
    case field::kComment:
      reader.varints(add_comment);
      return true;
    case field::kDefaultSampleType:
      profile_.default_value_type = read_string_index(reader);
      return true;
    case field::kDocUrl:
      profile_.doc_url = read_string_index(reader);
      return true;
    default:
      return false;
  }
}

void Decoder::walk_samples() {
  if (sample_count_ <= memory_left_ / sizeof(ProfileSample)) profile_.samples.reserve(sample_count_);
  walk(message_, [&](WireReader& reader) {
    if (reader.field() != field::kSample) return read_scalar(reader);
    read_sample(reader.bytes());
    return true;
  });
}

void Decoder::check_strings() {
  if (profile_.strings.empty() || !profile_.strings.front().empty()) {
    fail("the string table does not begin with an empty string");
  } else if (greatest_string_ >= profile_.strings.size()) {
    fail(fmt::format("string {} of {} is used", greatest_string_, profile_.strings.size()));
  }
}

Result<Profile> Decoder::decode() && {
  walk_tables();
  if (!problem_) read_locations();
  if (!problem_) walk_samples();
  if (!problem_) check_strings();
  if (problem_) return make_error(ErrorCode::corrupt, "read pprof: {}", *problem_);
  return std::move(profile_);
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<Profile> decode_pprof(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  if (is_gzip(bytes)) {
    const std::string inflated = TRY(gunzip(bytes, limits.inflated_bytes));
    return Decoder(inflated, limits.memory_bytes).decode();
  }
  if (bytes.empty()) return make_error(ErrorCode::corrupt, "read pprof: there is nothing in it");
  if (bytes.size() > limits.inflated_bytes) return make_error(ErrorCode::corrupt, "read pprof: too large");
  return Decoder(as_text(bytes), limits.memory_bytes).decode();
}

}  // namespace ddprof
