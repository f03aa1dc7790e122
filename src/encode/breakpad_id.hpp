#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// How symbol servers of the Breakpad family name a file: the first 16 bytes of its build id read as a
// little-endian GUID, in capitals, and an age, which is 0 for ELF files. Bytes that a short or missing build
// id has not are zero.
std::string breakpad_id(std::string_view build_id_hex);

}  // namespace ddprof
