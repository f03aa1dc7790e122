#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace ddprof {

// Reads the fields of one protobuf message from untrusted bytes. protozero asserts the wire
// types and throws on bad bytes; here both are a failed() state that ends the message.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : reader_(message.data(), message.size()) {}

  // Moves to the next field. False at the end and after a failure.
  bool next();
  [[nodiscard]] std::uint32_t field() const { return reader_.tag(); }
  [[nodiscard]] bool is_failed() const { return is_failed_; }

  // The value of the current field; 0 or empty, and failed, when it is of another kind.
  std::uint64_t varint();
  std::string_view bytes();
  void skip();

  // A repeated integer, packed or not: `each(value)` for all that this field holds.
  template <typename Each>
  void varints(Each&& each) {
    if (reader_.wire_type() != protozero::pbf_wire_type::length_delimited) return each(varint());
    const std::string_view packed = bytes();
    const char* at = packed.data();
    const char* const end = at + packed.size();
    while (at != end && !is_failed_) {
      const std::uint64_t value = decode_short(&at, end);
      if (!is_failed_) each(value);
    }
  }

 private:
  std::uint64_t decode(const char** at, const char* end);

  // Ids and counts have up to three bytes; a profile has tens of millions of them.
  std::uint64_t decode_short(const char** at, const char* end) {
    constexpr unsigned kMore = 0x80;
    if (end - *at < 3) return decode(at, end);
    const unsigned first = static_cast<unsigned char>((*at)[0]),
                   second = static_cast<unsigned char>((*at)[1]),
                   third = static_cast<unsigned char>((*at)[2]);
    if (first < kMore) {
      *at += 1;
      return first;
    }
    if (second < kMore) {
      *at += 2;
      return (first & ~kMore) | second << 7U;
    }
    if (third < kMore) {
      *at += 3;
      return (first & ~kMore) | (second & ~kMore) << 7U | third << 14U;
    }
    return decode(at, end);
  }

  protozero::pbf_reader reader_;
  bool is_failed_ = false;
};

}  // namespace ddprof
