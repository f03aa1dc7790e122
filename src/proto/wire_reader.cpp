#include "proto/wire_reader.hpp"

namespace ddprof {

bool WireReader::next() {
  if (is_failed_) return false;
  try {
    return reader_.next();
  } catch (const protozero::exception&) {
    is_failed_ = true;
    return false;
  }
}

std::uint64_t WireReader::varint() {
  if (is_failed_) return 0;
  try {
    if (reader_.wire_type() == protozero::pbf_wire_type::varint) return reader_.get_uint64();
  } catch (const protozero::exception&) {
  }
  is_failed_ = true;
  return 0;
}

std::string_view WireReader::bytes() {
  if (is_failed_) return {};
  try {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const protozero::data_view view = reader_.get_view();
      return {view.data(), view.size()};
    }
  } catch (const protozero::exception&) {
  }
  is_failed_ = true;
  return {};
}

void WireReader::skip() {
  if (is_failed_) return;
  try {
    reader_.skip();
  } catch (const protozero::exception&) {
    is_failed_ = true;
  }
}

std::uint64_t WireReader::decode(const char** at, const char* end) {
  try {
    return protozero::decode_varint(at, end);
  } catch (const protozero::exception&) {
    is_failed_ = true;
    return 0;
  }
}

}  // namespace ddprof
