#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "profile/dense_index.hpp"
#include "profile/profile.hpp"

namespace ddprof {

// An attribute of OTLP. Texts belong to the profile, the resource or the program: they outlive the encoder.
using OtlpTexts = std::vector<std::string_view>;
using OtlpNumbers = std::vector<std::int64_t>;
using OtlpValue = std::variant<std::string_view, std::int64_t, bool, OtlpTexts, OtlpNumbers>;

struct OtlpAttribute {
  std::string_view key;
  OtlpValue value;
  std::string_view unit;

  bool operator==(const OtlpAttribute&) const = default;
};

std::uint64_t hash_of(const OtlpAttribute& attribute);

// The attribute that a label of ours becomes: OpenTelemetry has its own names for what it knows.
struct OtlpLabelName {
  std::string_view label;
  std::string_view attribute;
  bool is_of_process;  // it describes the whole process, so it belongs to the resource
};
OtlpLabelName otlp_label_name(std::string_view label);

// "bytes" -> "By": units of attributes are those of UCUM. What it has no short name for stays as it is.
std::string_view otlp_unit(std::string_view unit);

// What kind of code a file with this path holds, for profile.frame.type; empty when that is not known.
std::string_view otlp_frame_type(std::string_view path);

// The attribute that holds a build id: which of them depends on who made the id.
std::string_view otlp_build_id_key(std::string_view build_id);

// The tables that all profiles of an OTLP request share. They must hold nothing twice and nothing that is not
// used, so what a profile holds gets its number when it is first used, and equal things get the same one. 0
// is the empty element that each table begins with.
class OtlpDictionary {
 public:
  using Number = std::uint32_t;

  // What is numbered of one table of the profile.
  class Numbering {
   public:
    explicit Numbering(std::size_t entries) : numbers_(entries) {}

    [[nodiscard]] Number operator[](std::size_t entry) const { return numbers_[entry]; }  // 0: not used yet
    // The entries that have a number, in its order; the first has 1.
    [[nodiscard]] std::span<const std::uint32_t> entries() const { return entries_; }

    template <typename Equal>
    Number add(std::uint32_t entry, std::uint64_t hash, Equal&& equal) {
      std::uint32_t at = index_.find(hash, [&](std::uint32_t position) { return equal(entries_[position]); });
      if (at == DenseIndex::kNotFound) {
        at = index_.append(hash);
        entries_.push_back(entry);
      }
      return numbers_[entry] = at + 1;
    }

   private:
    std::vector<Number> numbers_;
    std::vector<std::uint32_t> entries_;
    DenseIndex index_;
  };

  struct MappingAttributes {
    std::vector<Number> numbers;
    Number frame_type = 0;  // of the locations in it
  };

  // A trace and a span in it, in the order of W3C.
  struct Link {
    std::array<char, 16> trace_id{};
    std::array<char, 8> span_id{};

    friend bool operator==(const Link&, const Link&) = default;
  };

  explicit OtlpDictionary(const Profile& profile);

  // The stack of the sample with this index; 0 when it is empty.
  Number stack(std::uint32_t sample);
  Number text(std::string_view text);
  Number text(StringIndex index);
  Number attribute(const OtlpAttribute& attribute);
  Number link(const Link& link);

  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const Numbering& stacks() const { return stacks_; }
  [[nodiscard]] const Numbering& locations() const { return locations_; }
  [[nodiscard]] const Numbering& functions() const { return functions_; }
  [[nodiscard]] const Numbering& mappings() const { return mappings_; }
  [[nodiscard]] const MappingAttributes& mapping_attributes(Number mapping) const {
    return mapping_attributes_[mapping];
  }
  [[nodiscard]] Number known_text(StringIndex index) const { return text_numbers_[index]; }
  [[nodiscard]] Number known_text(std::string_view text) const;
  [[nodiscard]] std::span<const std::string_view> texts() const { return texts_; }
  [[nodiscard]] std::span<const OtlpAttribute> attributes() const { return attributes_; }
  [[nodiscard]] std::span<const Link> links() const { return links_; }

 private:
  Number location(std::uint32_t index);  // one that has no number yet
  Number function(std::uint32_t index);
  Number mapping(std::uint32_t index);
  MappingAttributes attributes_of(const ProfileMapping& mapping);
  [[nodiscard]] bool is_same_location(const ProfileLocation& left, const ProfileLocation& right) const;

  const Profile& profile_;
  Numbering stacks_, locations_, functions_, mappings_;
  std::vector<MappingAttributes> mapping_attributes_;  // by number
  std::vector<Number> text_numbers_;                   // of the profile's strings; 0 also for ""
  std::vector<std::string_view> texts_;                // by number
  DenseIndex text_index_;
  std::vector<OtlpAttribute> attributes_;  // the first has number 1
  DenseIndex attribute_index_;
  std::vector<Link> links_;  // the first has number 1
  DenseIndex link_index_;
};

// Writes the dictionary of a request: everything that was numbered until now.
void write_otlp_tables(protozero::pbf_writer& request, const OtlpDictionary& dictionary);

// About as many bytes as the tables take, rather more than less.
std::size_t otlp_tables_bytes(const OtlpDictionary& dictionary);

// The AnyValue of an attribute, as that field of a message.
void write_otlp_value(protozero::pbf_writer& message, std::uint32_t number, const OtlpValue& value);

// A text as protobuf wants it: in UTF-8.
void write_otlp_text(protozero::pbf_writer& message, std::uint32_t number, std::string_view text);

}  // namespace ddprof
