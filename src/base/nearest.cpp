#include "base/nearest.hpp"

#include <algorithm>
#include <vector>

namespace ddprof {

namespace {

// Longer input is not a typing mistake, and the cost is quadratic.
constexpr std::size_t kMaxWord = 64;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// One mistake in a short word, one in three letters of a longer one: "frequncy" finds "frequency", "foo"
// finds nothing.
std::size_t tolerance(std::string_view word) { return std::max<std::size_t>(1, word.size() / 3); }

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::size_t> before_last(width), last(width), row(width);
  for (std::size_t column = 0; column < width; ++column) last[column] = column;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = lower(left[i - 1]) == lower(right[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(left[i - 1]) == lower(right[j - 2]) &&
                           lower(left[i - 2]) == lower(right[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[right.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kMaxWord) return {};
  std::string_view best;
  std::size_t best_distance = tolerance(word) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  return best.empty() ? std::string() : "; did you mean " + std::string(best) + "?";
}

}  // namespace ddprof
