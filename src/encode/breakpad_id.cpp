#include "encode/breakpad_id.hpp"

#include <array>
#include <cctype>

namespace ddprof {

std::string breakpad_id(std::string_view build_id_hex) {
  // A GUID is a 32-bit number, two of 16 bits, and 8 bytes: the numbers are printed most significant first.
  constexpr std::array<std::size_t, 16> kOrder{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string id;
  for (const std::size_t byte : kOrder) {
    for (const std::size_t digit : {2 * byte, 2 * byte + 1}) {
      const bool is_digit =
          digit < build_id_hex.size() && std::isxdigit(static_cast<unsigned char>(build_id_hex[digit])) != 0;
      id += is_digit ? static_cast<char>(std::toupper(static_cast<unsigned char>(build_id_hex[digit]))) : '0';
    }
  }
  return id + '0';
}

}  // namespace ddprof
