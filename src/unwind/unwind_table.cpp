#include "unwind/unwind_table.hpp"

#include <algorithm>
#include <atomic>

namespace ddprof {

RuleDictionary::RuleDictionary() {
  rules_.reserve(DDPROF_MAX_UNWIND_RULES);  // all of it at once: rules never move
  intern_slowly({DDPROF_CFA_GAP, 0, 0, 0}, 0);
  intern({DDPROF_CFA_UNSUPPORTED, 0, 0, 0});
}

RuleIndex RuleDictionary::intern_slowly(const ddprof_unwind_rule& rule, std::uint64_t key) {
  const auto next = static_cast<RuleIndex>(rules_.size());
  const auto known = indices_.find(key);
  if (known == indices_.end() && rules_.size() >= limit_) {
    ++refusals_;
    return RuleIndex::unsupported;
  }
  RuleIndex index = next;
  if (known != indices_.end()) {
    index = known->second;
  } else {
    indices_.emplace(key, next);
    rules_.push_back(rule);
  }
  recent_[recent_slot(key)] = {key, index};
  return index;
}

namespace {

// Below about 16 rows a page the repeated first row and the index would cost more than the shorter search
// saves.
constexpr std::uint64_t kRowsPerPage = 16;

unsigned page_shift_for(std::uint64_t span, std::uint64_t rows) {
  unsigned shift = UnwindTableBuilder::kMinPageShift;
  while (shift < UnwindTableBuilder::kMaxPageShift && (span >> shift) * kRowsPerPage > rows) ++shift;
  return shift;
}

template <typename T>
void give_back_spare(std::vector<T>& items) {
  if (items.capacity() - items.size() > items.size() / 4) items.shrink_to_fit();
}

}  // namespace

RuleIndex UnwindTable::find_in_window(std::uint64_t elf_address) const {
  const UnwindTable* window = windows_->find(elf_address);
  return window != nullptr ? window->find(elf_address) : RuleIndex::gap;
}

void UnwindTable::translate(const RuleDictionary& from, RuleDictionary& to) {
  std::vector<std::uint16_t> indices;
  indices.reserve(from.size());
  for (const ddprof_unwind_rule& rule : from.rules())
    indices.push_back(static_cast<std::uint16_t>(to.intern(rule)));
  for (ddprof_unwind_row& row : rows_) row.rule = indices[row.rule];
}

bool UnwindTable::is_function_with(std::uint64_t begin, std::uint64_t address) const {
  constexpr std::uint64_t kMaxFunctionBytes = std::uint64_t{1} << 20;
  const std::uint64_t first = begin - base_;
  const std::uint64_t last = address - base_;
  if (first > last || last >= size_ || last - first > kMaxFunctionBytes) return false;
  const auto next = std::lower_bound(adjoining_.begin(), adjoining_.end(), first);
  const bool adjoins = next != adjoining_.end() && *next == first;
  if (!adjoins && first > 0 && find(begin - 1) != RuleIndex::gap) return false;
  const auto other = adjoins ? next + 1 : next;
  if (other != adjoining_.end() && *other <= last) return false;
  if (find(begin) == RuleIndex::gap) return false;
  for (std::uint64_t page = first >> page_shift_; page <= last >> page_shift_; ++page) {
    for (std::uint32_t row = pages_[page]; row < pages_[page + 1]; ++row) {
      const std::uint64_t offset = (page << page_shift_) + rows_[row].pc_low;
      if (offset > first && offset <= last && RuleIndex{rows_[row].rule} == RuleIndex::gap) return false;
    }
  }
  return true;
}

UnwindTableBuilder::UnwindTableBuilder(std::uint64_t base, std::uint64_t span, std::size_t expected_rows,
                                       std::size_t max_rows)
    : span_(std::min(span, kMaxSpan)), max_rows_(max_rows) {
  table_.base_ = base;
  // Twice the expectation: finishing can make pages larger, never smaller.
  table_.page_shift_ = page_shift_for(span_, std::uint64_t{expected_rows} * 2);
  table_.rows_.reserve(expected_rows);
  table_.pages_.push_back(0);
  table_.rows_.push_back({0, static_cast<std::uint16_t>(RuleIndex::gap)});
}

void UnwindTableBuilder::open_pages_until(std::uint64_t page) {
  while (table_.pages_.size() <= page) {
    table_.pages_.push_back(static_cast<std::uint32_t>(table_.rows_.size()));
    table_.rows_.push_back({0, static_cast<std::uint16_t>(last_rule_)});
  }
}

void UnwindTableBuilder::add(std::uint64_t elf_address, RuleIndex rule) {
  const std::uint64_t offset = elf_address - table_.base_;
  if (rule == last_rule_ || offset >= span_ || offset < next_offset_) return;
  if (table_.row_count_ >= max_rows_) {
    ++unread_rows_;
    if (last_rule_ == RuleIndex::gap) return;
    rule = RuleIndex::gap;
  }
  open_pages_until(offset >> table_.page_shift_);
  const std::uint64_t low = offset & ((std::uint64_t{1} << table_.page_shift_) - 1);
  if (low == 0) {
    table_.rows_.back().rule = static_cast<std::uint16_t>(rule);  // no need to repeat the row before
  } else {
    table_.rows_.push_back({static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(rule)});
  }
  ++table_.row_count_;
  last_rule_ = rule;
  next_offset_ = offset + 1;
}

void UnwindTableBuilder::begin_function(std::uint64_t elf_address) {
  const std::uint64_t offset = elf_address - table_.base_;
  if (last_rule_ != RuleIndex::gap && offset < span_ && offset >= next_offset_)
    table_.adjoining_.push_back(static_cast<std::uint32_t>(offset));
}

// In place: every output position is at or before the input that it comes from.
void UnwindTableBuilder::coarsen(unsigned page_shift) {
  auto& pages = table_.pages_;
  auto& rows = table_.rows_;
  const std::size_t old_pages = pages.size() - 1;
  const std::size_t group = std::size_t{1} << (page_shift - table_.page_shift_);
  std::size_t new_pages = 0;
  std::uint32_t written = 0;
  for (std::size_t old = 0; old < old_pages; ++old) {
    const std::size_t in_group = old % group;
    std::uint32_t from = pages[old];
    const std::uint32_t to = pages[old + 1];
    if (in_group == 0) {
      pages[new_pages++] = written;
    } else if (rows[from].rule == rows[written - 1].rule) {
      ++from;  // repeated only because a page began here
    }
    for (; from < to; ++from) {
      const std::size_t low = rows[from].pc_low + (in_group << table_.page_shift_);
      rows[written++] = {static_cast<std::uint16_t>(low), rows[from].rule};
    }
  }
  pages.resize(new_pages);
  pages.push_back(written);
  rows.resize(written);
  table_.page_shift_ = page_shift;
}

UnwindTable UnwindTableBuilder::finish(std::uint64_t end_address, const UnwindTableCounters& counters) && {
  table_.counters_ = counters;
  table_.counters_.unread += unread_rows_;
  table_.size_ = std::max(next_offset_, std::min(end_address - table_.base_, span_));
  if (end_address <= table_.base_ || table_.row_count_ == 0) {
    UnwindTable empty;
    empty.counters_ = counters;
    return empty;
  }
  open_pages_until((table_.size_ - 1) >> table_.page_shift_);
  table_.pages_.push_back(static_cast<std::uint32_t>(table_.rows_.size()));
  const unsigned shift = page_shift_for(table_.size_, table_.row_count_);
  if (shift > table_.page_shift_) coarsen(shift);
  static std::atomic<std::uint64_t> last_id{0};
  table_.id_ = ++last_id;
  give_back_spare(table_.rows_);
  give_back_spare(table_.pages_);
  give_back_spare(table_.adjoining_);
  return std::move(table_);
}

}  // namespace ddprof
