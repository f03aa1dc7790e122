#include "symbol/dwarf/scope_index.hpp"

#include <algorithm>
#include <string_view>

#include "symbol/dwarf/dwarf_file.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxScopes = std::size_t{1} << 19U;  // 12 MiB
constexpr std::size_t kMaxScopeDepth = 4096;
constexpr std::size_t kMaxPrefixParts = 32;
constexpr std::size_t kMaxPrefixBytes = 4096;

// Empty when it has none, and needs none: a class without a name.
std::string_view scope_name(const Unit& unit, std::uint64_t entry) {
  ByteCursor cursor = unit.cursor_at(entry);
  const Abbreviation* abbreviation = unit.abbreviations().find(cursor.uleb());
  if (abbreviation == nullptr) return {};
  for (const AttributeSpec& spec : unit.abbreviations().attributes(*abbreviation)) {
    const AttributeValue value = read_value(cursor, spec.form, unit.encoding(), spec.implicit);
    if (cursor.failed()) break;
    if (spec.attribute == DwarfAttribute::name) return unit.string(value);
  }
  return abbreviation->tag == DwarfTag::name_space ? "(anonymous namespace)" : std::string_view();
}

}  // namespace

ScopeIndex ScopeIndex::build(const Unit& unit) {
  ScopeIndex index;
  if (!unit.file().budget().spend(unit.header().end - unit.header().offset)) return index;
  const AbbreviationTable& table = unit.abbreviations();
  ByteCursor cursor = unit.cursor_at(unit.root().first_child);
  std::vector<std::uint32_t> around = {kNoScope};  // of each open entry
  while (!cursor.at_end() && !around.empty() && around.size() < kMaxScopeDepth) {
    const std::uint64_t entry = cursor.offset();
    const std::uint64_t code = cursor.uleb();
    if (code == 0) {
      const std::uint32_t closed = around.back();
      around.pop_back();
      const bool is_end = !around.empty() && closed != around.back();
      if (is_end) index.scopes_[closed].end = entry;
      continue;
    }
    const Abbreviation* abbreviation = table.find(code);
    if (abbreviation == nullptr) break;
    table.skip_attributes(*abbreviation, cursor);
    if (!abbreviation->has_children) continue;
    const bool is_scope = abbreviation->kind == EntryKind::scope || abbreviation->kind == EntryKind::type;
    if (!is_scope || index.scopes_.size() >= kMaxScopes) {
      around.push_back(around.back());
      continue;
    }
    const std::uint32_t outer = around.back();
    around.push_back(static_cast<std::uint32_t>(index.scopes_.size()));
    index.scopes_.push_back({entry, unit.header().end, outer});
  }
  return index;
}

std::string ScopeIndex::prefix(const Unit& unit, std::uint64_t entry) const {
  const auto after =
      std::upper_bound(scopes_.begin(), scopes_.end(), entry,
                       [](std::uint64_t wanted, const Scope& scope) { return wanted < scope.begin; });
  auto at = static_cast<std::uint32_t>(after - scopes_.begin());
  at = at == 0 ? kNoScope : at - 1;
  while (at != kNoScope && (scopes_[at].end <= entry || scopes_[at].begin == entry)) at = scopes_[at].outer;
  std::string text;
  for (std::size_t part = 0; at != kNoScope && part < kMaxPrefixParts; ++part, at = scopes_[at].outer) {
    const std::string_view name = scope_name(unit, scopes_[at].begin);
    if (name.size() + text.size() > kMaxPrefixBytes) break;
    if (!name.empty()) text.insert(0, std::string(name) + "::");
  }
  return text;
}

}  // namespace ddprof
