#include "collect/heap/table_publisher.hpp"

#include <algorithm>
#include <cstring>

namespace ddprof {

namespace {

constexpr std::uint64_t kAlignment = 64;

std::uint64_t fold(std::uint64_t hash, std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = ddprof_heap_hash(hash, word);
  }
  return hash;
}

// With the numbers of its rules: a worker that numbers them differently has another table.
std::uint64_t hash_of(const UnwindTable& table) {
  std::uint64_t hash = ddprof_heap_hash(DDPROF_HEAP_HASH_SEED, table.base());
  hash = ddprof_heap_hash(hash, table.end());
  hash = ddprof_heap_hash(hash, table.page_shift());
  hash = fold(hash, std::as_bytes(table.pages()));
  return fold(hash, std::as_bytes(table.rows()));
}

// Copies are never taken back.
bool has_lasting_table(const Module& module) { return module.table != nullptr && !module.is_generated; }

}  // namespace

TablePublisher::TablePublisher(const MappedRegion& memory) : memory_(memory) {
  ddprof_heap_tables& all = tables();
  const std::uint64_t first_free = (sizeof all + kAlignment - 1) / kAlignment * kAlignment;
  if (all.used < first_free || all.used > memory.size()) all.used = first_free;
  // Written by a worker, which may have been made to write anything.
  std::uint64_t before = 0;
  for (std::uint64_t place = all.first;
       place > before && place % kAlignment == 0 && place <= memory.size() - sizeof(ddprof_heap_table);
       place = at<ddprof_heap_table>(place)->next) {
    by_hash_.emplace(at<ddprof_heap_table>(place)->hash, place);
    last_ = before = place;
  }
}

std::span<const ddprof_unwind_rule> TablePublisher::rules() const {
  return {tables().rules, std::min<std::size_t>(tables().rule_count, DDPROF_MAX_UNWIND_RULES)};
}

std::optional<std::uint64_t> TablePublisher::allocate(std::size_t bytes) {
  ddprof_heap_tables& all = tables();
  const std::uint64_t begin = all.used;
  const std::uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > memory_.size() - begin) return std::nullopt;
  all.used = begin + rounded;
  return begin;
}

std::uint64_t TablePublisher::publish(const UnwindTable& table, std::uint64_t hash) {
  const std::size_t pages_bytes = table.pages().size_bytes();
  const std::size_t rows_at = (sizeof(ddprof_heap_table) + pages_bytes + 7) / 8 * 8;
  const auto place = allocate(rows_at + table.rows().size_bytes());
  if (!place) return 0;
  auto& header = *at<ddprof_heap_table>(*place);
  header = {.base = table.base(),
            .size = table.end() - table.base(),
            .page_shift = table.page_shift(),
            .page_count = static_cast<std::uint32_t>(table.pages().size() - 1),
            .row_count = static_cast<std::uint32_t>(table.rows().size()),
            .reserved = 0,
            .pages = *place + sizeof header,
            .rows = *place + rows_at,
            .hash = hash,
            .next = 0};
  std::memcpy(at<std::byte>(header.pages), table.pages().data(), pages_bytes);
  std::memcpy(at<std::byte>(header.rows), table.rows().data(), table.rows().size_bytes());
  (last_ != 0 ? at<ddprof_heap_table>(last_)->next : tables().first) = *place;
  last_ = *place;
  by_hash_[hash] = *place;
  return *place;
}

std::uint64_t TablePublisher::find_or_publish(const UnwindTable& table) {
  if (table.empty()) return 0;
  const auto [known, is_new] = by_table_.try_emplace(table.id(), 0);
  if (!is_new) return known->second;
  const std::uint64_t hash = hash_of(table);
  const auto same = by_hash_.find(hash);
  return known->second = same != by_hash_.end() ? same->second : publish(table, hash);
}

// Before the tables that name them.
void TablePublisher::publish_rules(const RuleDictionary& dictionary) {
  ddprof_heap_tables& all = tables();
  const auto rules = dictionary.rules();
  for (std::size_t i = std::min<std::size_t>(all.rule_count, rules.size()); i < rules.size(); ++i)
    all.rules[i] = rules[i];
  __atomic_store_n(&all.rule_count, static_cast<std::uint32_t>(rules.size()), __ATOMIC_RELEASE);
}

std::vector<ddprof_heap_module> TablePublisher::describe(const ModuleMap& modules,
                                                         const RuleDictionary& dictionary) {
  publish_rules(dictionary);
  std::vector<ddprof_heap_module> described;
  for (const Module& module : modules.modules()) {
    described.push_back({.start = module.start.value,
                         .end = module.end.value,
                         .bias = module.bias,
                         .table = has_lasting_table(module) ? find_or_publish(*module.table) : 0,
                         .patch = 0});
  }
  return described;
}

}  // namespace ddprof
