#include "encode/otlp_dictionary.hpp"

#include <array>
#include <protozero/varint.hpp>
#include <string>

#include "encode/escaped_text.hpp"
#include "proto/otlp_fields.hpp"

namespace ddprof {

namespace {

using protozero::pbf_writer;
namespace otlp = otlp_field;
using Number = OtlpDictionary::Number;

// proto3 leaves zeros out. protozero also leaves out messages that are empty, and those have a number here:
// one field of each is always written.
void add_unless_zero(pbf_writer& message, std::uint32_t number, std::uint64_t value) {
  if (value != 0) message.add_uint64(number, value);
}

void add_unless_zero(pbf_writer& message, std::uint32_t number, std::int64_t value) {
  add_unless_zero(message, number, static_cast<std::uint64_t>(value));
}

void add_numbers(pbf_writer& message, std::uint32_t number, std::span<const Number> numbers) {
  message.add_packed_uint32(number, numbers.begin(), numbers.end());
}

// Stacks are most of a request, and short. Each is put together here, so that protozero has nothing to move.
class StackWriter {
 public:
  explicit StackWriter(pbf_writer& tables) : tables_(tables) {}

  void write(const OtlpDictionary::Numbering& locations, std::span<const std::uint32_t> stack) {
    stack_.resize(kMaxHeader + stack.size() * protozero::max_varint_length);
    char* const numbers = stack_.data() + kMaxHeader;
    char* end = numbers;
    for (std::uint32_t location : stack) end = write_varint(end, locations[location]);
    const auto size = static_cast<std::size_t>(end - numbers);
    char* const begin = numbers - 1 - protozero::length_of_varint(size);
    *begin = (otlp::kStackLocations << 3U) | kLengthDelimited;
    protozero::add_varint_to_buffer(begin + 1, size);
    tables_.add_message(otlp::kStackTable, begin, static_cast<std::size_t>(end - begin));
  }

 private:
  // The sizes that numbers of locations have, without a loop.
  static char* write_varint(char* at, std::uint32_t number) {
    constexpr std::uint32_t kMore = 0x80;
    if (number < kMore) return *at = static_cast<char>(number), at + 1;
    at[0] = static_cast<char>(number | kMore);
    if (number < kMore << 7U) return at[1] = static_cast<char>(number >> 7U), at + 2;
    return at + 1 + protozero::add_varint_to_buffer(at + 1, number >> 7U);
  }

  static constexpr char kLengthDelimited = 2;
  static constexpr std::size_t kMaxHeader = 1 + protozero::max_varint_length;

  pbf_writer& tables_;
  std::string stack_;
};

void write_location(pbf_writer& tables, const OtlpDictionary& dictionary, const ProfileLocation& location) {
  const Number mapping = location.mapping == kNoMapping ? 0 : dictionary.mappings()[location.mapping];
  pbf_writer message(tables, otlp::kLocationTable);
  add_unless_zero(message, otlp::kLocationMapping, std::uint64_t{mapping});
  message.add_uint64(otlp::kLocationAddress, location.address.value);
  for (const ProfileLine& line : location.lines) {
    pbf_writer part(message, otlp::kLocationLines);
    part.add_uint32(otlp::kLineFunction, dictionary.functions()[line.function]);
    add_unless_zero(part, otlp::kLineNumber, line.line);
    add_unless_zero(part, otlp::kLineColumn, line.column);
  }
  const Number frame_type = dictionary.mapping_attributes(mapping).frame_type;
  if (frame_type != 0) add_numbers(message, otlp::kLocationAttributes, std::span(&frame_type, 1));
}

void write_function(pbf_writer& tables, const OtlpDictionary& dictionary, const ProfileFunction& function) {
  pbf_writer message(tables, otlp::kFunctionTable);
  message.add_uint32(otlp::kFunctionName, dictionary.known_text(function.name));
  add_unless_zero(message, otlp::kFunctionSystemName,
                  std::uint64_t{dictionary.known_text(function.system_name)});
  add_unless_zero(message, otlp::kFunctionFile, std::uint64_t{dictionary.known_text(function.file)});
  add_unless_zero(message, otlp::kFunctionStartLine, function.start_line);
}

void write_mapping(pbf_writer& tables, const OtlpDictionary& dictionary, std::uint32_t index) {
  const ProfileMapping& mapping = dictionary.profile().mappings[index];
  pbf_writer message(tables, otlp::kMappingTable);
  message.add_uint64(otlp::kMappingStart, mapping.start.value);
  add_unless_zero(message, otlp::kMappingLimit, mapping.limit.value);
  add_unless_zero(message, otlp::kMappingOffset, mapping.file_offset);
  add_unless_zero(message, otlp::kMappingPath, std::uint64_t{dictionary.known_text(mapping.path)});
  add_numbers(message, otlp::kMappingAttributes,
              dictionary.mapping_attributes(dictionary.mappings()[index]).numbers);
}

void write_attribute(pbf_writer& tables, const OtlpDictionary& dictionary, const OtlpAttribute& attribute) {
  pbf_writer message(tables, otlp::kAttributeTable);
  message.add_uint32(otlp::kAttributeKey, dictionary.known_text(attribute.key));
  write_otlp_value(message, otlp::kAttributeValue, attribute.value);
  add_unless_zero(message, otlp::kAttributeUnit, std::uint64_t{dictionary.known_text(attribute.unit)});
}

void write_link(pbf_writer& tables, const OtlpDictionary::Link& link) {
  pbf_writer message(tables, otlp::kLinkTable);
  message.add_bytes(otlp::kLinkTraceId, link.trace_id.data(), link.trace_id.size());
  message.add_bytes(otlp::kLinkSpanId, link.span_id.data(), link.span_id.size());
}

void write_any(pbf_writer& any, std::string_view text) { write_otlp_text(any, otlp::kText, text); }
void write_any(pbf_writer& any, std::int64_t number) { any.add_int64(otlp::kInteger, number); }
void write_any(pbf_writer& any, bool is_true) { any.add_bool(otlp::kBool, is_true); }

template <typename Part>
void write_any(pbf_writer& any, const std::vector<Part>& parts) {
  pbf_writer array(any, otlp::kArray);
  for (const Part& part : parts) {
    pbf_writer value(array, otlp::kArrayValues);
    write_any(value, part);
  }
}

}  // namespace

void write_otlp_text(pbf_writer& message, std::uint32_t number, std::string_view text) {
  if (is_utf8(text)) {
    message.add_string(number, text.data(), text.size());
  } else {
    message.add_string(number, to_utf8(text));
  }
}

void write_otlp_value(pbf_writer& message, std::uint32_t number, const OtlpValue& value) {
  pbf_writer any(message, number);
  std::visit([&](const auto& held) { write_any(any, held); }, value);
}

void write_otlp_tables(pbf_writer& request, const OtlpDictionary& dictionary) {
  const Profile& profile = dictionary.profile();
  pbf_writer tables(request, otlp::kDictionary);
  for (const std::uint32_t table : {otlp::kMappingTable, otlp::kLocationTable, otlp::kFunctionTable,
                                    otlp::kAttributeTable, otlp::kStackTable})
    tables.add_message(table, std::string());
  write_link(tables, {});
  for (const OtlpDictionary::Link& link : dictionary.links()) write_link(tables, link);
  StackWriter stacks(tables);
  for (std::uint32_t sample : dictionary.stacks().entries())
    stacks.write(dictionary.locations(), profile.samples[sample].locations);
  for (std::uint32_t index : dictionary.locations().entries())
    write_location(tables, dictionary, profile.locations[index]);
  for (std::uint32_t index : dictionary.functions().entries())
    write_function(tables, dictionary, profile.functions[index]);
  for (std::uint32_t index : dictionary.mappings().entries()) write_mapping(tables, dictionary, index);
  for (const OtlpAttribute& attribute : dictionary.attributes())
    write_attribute(tables, dictionary, attribute);
  for (std::string_view text : dictionary.texts()) write_otlp_text(tables, otlp::kStringTable, text);
}

std::size_t otlp_tables_bytes(const OtlpDictionary& dictionary) {
  const Profile& profile = dictionary.profile();
  const auto location_bytes =
      static_cast<std::size_t>(protozero::length_of_varint(dictionary.locations().entries().size()));
  std::size_t bytes = 1024 + 64 * (dictionary.attributes().size() + dictionary.mappings().entries().size()) +
                      20 * dictionary.functions().entries().size();
  for (std::uint32_t sample : dictionary.stacks().entries())
    bytes += 6 + location_bytes * profile.samples[sample].locations.size();
  for (std::uint32_t index : dictionary.locations().entries())
    bytes += 18 + 14 * profile.locations[index].lines.size();
  for (std::string_view text : dictionary.texts()) bytes += 3 + text.size();
  return bytes;
}

}  // namespace ddprof
