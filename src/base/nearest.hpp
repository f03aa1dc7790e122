#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ddprof {

// How many insertions, deletions, replacements and swaps of neighbours turn one word into the other, ignoring
// case. (Damerau-Levenshtein in its restricted form: no part of a word is edited twice.)
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

// The candidate that a mistyped word most likely meant; empty when none is close enough to be worth saying.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean X?" to end an error with, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace ddprof
