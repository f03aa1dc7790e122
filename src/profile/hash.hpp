#pragma once

#include <cstdint>

namespace ddprof {

// Folds one more word into a hash: the two halves of a 64x64-bit product, which mixes every bit in two
// instructions.
inline std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t word) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(hash ^ word ^ 0x9e3779b97f4a7c15U) * 0xd6e8feb86659fd93U;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

}  // namespace ddprof
