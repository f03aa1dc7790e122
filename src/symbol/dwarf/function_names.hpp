#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbol/dwarf/dwarf_file.hpp"
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

struct FunctionName {
  std::string_view linker_name;
  std::string_view name;  // with its namespaces and classes when there is no linker name, which tells them
  std::uint32_t start_line = 0;
};

// What functions are called. Their entries say little themselves: most of it is in the entry that they are a
// copy of (DW_AT_abstract_origin) or that declares them (DW_AT_specification), in any unit.
class FunctionNames {
 public:
  // `unit` is the one around `entry`. Texts live until clear() or trim().
  FunctionName find(const Unit& unit, std::uint64_t entry);
  // Forgets everything: before a file goes away.
  void clear();
  // Forgets everything when that is much.
  void trim();
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Resolved {
    FunctionName name;
    EntryReference named_by;  // the entry that has the name; its scopes are the name's
    bool is_final = false;    // its scopes are in it, or it needs none
  };
  using Key = std::pair<const DwarfFile*, std::uint64_t>;

  Resolved resolve(const Unit& unit, std::uint64_t entry, unsigned depth);
  Resolved read(const Unit& unit, std::uint64_t entry, unsigned depth);
  void add_origin(const Unit& unit, const AttributeValue& origin, unsigned depth, Resolved& resolved);
  void add_scopes(const Unit& unit, Resolved& resolved);
  const ScopeIndex& scopes_of(const Unit& unit);

  absl::flat_hash_map<Key, Resolved> names_;
  absl::flat_hash_map<Key, ScopeIndex> scopes_;  // by unit
  std::size_t scope_bytes_ = 0;
  std::deque<std::string> texts_;
  std::size_t text_bytes_ = 0;
};

}  // namespace ddprof
