#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "symbol/dwarf/unit.hpp"

namespace ddprof {

// The namespaces and classes around the entries of a unit. An entry does not know what it is in: this is only
// built when it is first needed.
class ScopeIndex {
 public:
  static ScopeIndex build(const Unit& unit);

  // "outer::inner::" of an entry; empty when it is in none.
  [[nodiscard]] std::string prefix(const Unit& unit, std::uint64_t entry) const;
  [[nodiscard]] std::size_t memory_bytes() const { return scopes_.capacity() * sizeof(Scope); }

 private:
  static constexpr std::uint32_t kNoScope = 0xffffffff;
  struct Scope {
    std::uint64_t begin = 0;  // its entry
    std::uint64_t end = 0;
    std::uint32_t outer = kNoScope;
  };
  std::vector<Scope> scopes_;  // by begin
};

}  // namespace ddprof
