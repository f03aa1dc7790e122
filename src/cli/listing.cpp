#include "cli/listing.hpp"

#include <algorithm>
#include <tuple>

namespace ddprof {

namespace {

constexpr std::size_t kShortListing = 50;  // shown whole
constexpr std::size_t kMaxHotRows = 60;
constexpr std::size_t kContext = 3;

}  // namespace

std::vector<const ListingRow*> hottest_rows(const std::vector<ListingRow>& rows, std::size_t count) {
  std::vector<const ListingRow*> hot;
  for (const ListingRow& row : rows) {
    if (row.sum.self != 0 || row.sum.total != 0) hot.push_back(&row);
  }
  const auto rank = [](const ListingRow* row) {
    return std::tuple(-size_of_value(row->sum.self), -size_of_value(row->sum.total), row->number);
  };
  std::sort(hot.begin(), hot.end(),
            [&](const ListingRow* left, const ListingRow* right) { return rank(left) < rank(right); });
  if (hot.size() > count) hot.resize(count);
  return hot;
}

void keep_hot_rows(std::vector<ListingRow>& rows) {
  if (rows.size() <= kShortListing) return;
  std::vector<bool> is_kept(rows.size());
  for (const ListingRow* hot : hottest_rows(rows, kMaxHotRows)) {
    const auto at = static_cast<std::size_t>(hot - rows.data());
    const std::size_t first = at - std::min(at, kContext), last = std::min(at + kContext, rows.size() - 1);
    for (std::size_t near = first; near <= last; ++near) is_kept[near] = true;
  }
  std::vector<ListingRow> kept;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (is_kept[at]) kept.push_back(std::move(rows[at]));
  }
  rows = std::move(kept);
}

}  // namespace ddprof
