#include "symbol/dwarf/function_names.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

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

namespace {

// A copy of a copy of a declaration: three in practice.
constexpr unsigned kMaxOrigins = 16;
constexpr std::size_t kMaxKeptNames = std::size_t{1} << 15U;
constexpr std::size_t kMaxKeptTextBytes = std::size_t{4} << 20U;
constexpr std::size_t kMaxKeptScopeBytes = std::size_t{4} << 20U;

// C, Go and assembler have no scopes, or write them into their names.
bool has_scopes(std::uint64_t language) {
  switch (language) {
    case 0x01:    // C89
    case 0x02:    // C
    case 0x0c:    // C99
    case 0x16:    // Go
    case 0x1d:    // C11
    case 0x2c:    // C17
    case 0x8001:  // assembler
      return false;
    default:
      return true;
  }
}

}  // namespace

FunctionName FunctionNames::find(const Unit& unit, std::uint64_t entry) {
  Resolved resolved = resolve(unit, entry, 0);
  if (resolved.is_final) return resolved.name;
  if (resolved.name.linker_name.empty() && !resolved.name.name.empty()) add_scopes(unit, resolved);
  resolved.is_final = true;
  names_[Key(&unit.file(), entry)] = resolved;
  return resolved.name;
}

FunctionNames::Resolved FunctionNames::resolve(const Unit& unit, std::uint64_t entry, unsigned depth) {
  const Key key(&unit.file(), entry);
  if (const auto found = names_.find(key); found != names_.end()) return found->second;
  const Resolved resolved = read(unit, entry, depth);
  if (depth < kMaxOrigins) names_.emplace(key, resolved);
  return resolved;
}

FunctionNames::Resolved FunctionNames::read(const Unit& unit, std::uint64_t entry, unsigned depth) {
  Resolved resolved;
  ByteCursor cursor = unit.cursor_at(entry);
  const Abbreviation* abbreviation = unit.abbreviations().find(cursor.uleb());
  if (abbreviation == nullptr) return resolved;
  AttributeValue name;
  AttributeValue linker_name;
  AttributeValue origin;
  for (const AttributeSpec& spec : unit.abbreviations().attributes(*abbreviation)) {
    const AttributeValue value = read_value(cursor, spec.form, unit.encoding(), spec.implicit);
    if (cursor.failed()) break;
    switch (spec.attribute) {
      case DwarfAttribute::name:
        name = value;
        break;
      case DwarfAttribute::linkage_name:
      case DwarfAttribute::mips_linkage_name:
        linker_name = value;
        break;
      case DwarfAttribute::decl_line:
        resolved.name.start_line = static_cast<std::uint32_t>(value.number);
        break;
      case DwarfAttribute::abstract_origin:
      case DwarfAttribute::specification:
        origin = value;
        break;
      default:
        break;
    }
  }
  resolved.name.name = unit.string(name);
  resolved.name.linker_name = unit.string(linker_name);
  if (!resolved.name.name.empty()) resolved.named_by = {&unit.file(), entry};
  if (origin.exists() && depth < kMaxOrigins && unit.file().budget().spend(1))
    add_origin(unit, origin, depth, resolved);
  return resolved;
}

void FunctionNames::add_origin(const Unit& unit, const AttributeValue& origin, unsigned depth,
                               Resolved& resolved) {
  const auto reference = unit.reference(origin);
  if (!reference) return;
  Resolved above;
  if (reference->file == &unit.file() && unit.contains(reference->offset)) {
    above = resolve(unit, reference->offset, depth + 1);
  } else if (const auto other = reference->file->unit_around(reference->offset)) {
    above = resolve(*other, reference->offset, depth + 1);
  }
  FunctionName& name = resolved.name;
  if (name.linker_name.empty()) name.linker_name = above.name.linker_name;
  if (name.start_line == 0) name.start_line = above.name.start_line;
  if (!name.name.empty()) return;
  name.name = above.name.name;
  resolved.named_by = above.named_by;
  resolved.is_final = above.is_final;
}

void FunctionNames::add_scopes(const Unit& unit, Resolved& resolved) {
  const EntryReference named_by = resolved.named_by;
  std::shared_ptr<const Unit> other;
  if (named_by.file != &unit.file() || !unit.contains(named_by.offset)) {
    other = named_by.file->unit_around(named_by.offset);
    if (other == nullptr) return;
  }
  const Unit& around = other != nullptr ? *other : unit;
  if (!has_scopes(around.root().language)) return;
  std::string text = scopes_of(around).prefix(around, named_by.offset);
  if (text.empty()) return;
  text += resolved.name.name;
  if (!unit.file().budget().spend(text.size()) || text_bytes_ > unit.file().budget().limits().bytes() / 8)
    return;
  text_bytes_ += text.size();
  resolved.name.name = texts_.emplace_back(std::move(text));
}

const ScopeIndex& FunctionNames::scopes_of(const Unit& unit) {
  const Key key(&unit.file(), unit.header().offset);
  if (const auto found = scopes_.find(key); found != scopes_.end()) return found->second;
  if (scope_bytes_ > kMaxKeptScopeBytes) {
    scopes_.clear();
    scope_bytes_ = 0;
  }
  const ScopeIndex& scopes = scopes_.emplace(key, ScopeIndex::build(unit)).first->second;
  scope_bytes_ += scopes.memory_bytes();
  return scopes;
}

void FunctionNames::clear() {
  names_.clear();
  scopes_.clear();
  texts_.clear();
  scope_bytes_ = 0;
  text_bytes_ = 0;
}

void FunctionNames::trim() {
  if (names_.size() <= kMaxKeptNames && text_bytes_ <= kMaxKeptTextBytes) return;
  names_.clear();
  texts_.clear();
  text_bytes_ = 0;
}

std::size_t FunctionNames::memory_bytes() const {
  return names_.capacity() * (sizeof(Key) + sizeof(Resolved)) + scope_bytes_ + text_bytes_;
}

}  // namespace ddprof
