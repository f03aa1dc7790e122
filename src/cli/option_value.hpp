#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/option_table.hpp"

namespace ddprof {

// Text to value and back, driven by the row.

// Sets one option. Values of a list add up while they come from one source, and replace those of a weaker
// source.
Result<void> set_option(Options& options, std::size_t index, std::string_view text, const Origin& origin);

// true, yes, on, 1 and their opposites, in any case.
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text);

// Words separated by spaces.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

// The value as the user could write it; lists joined with "; ". Empty: nothing is set.
[[nodiscard]] std::string option_text(const Options& options, const OptionRow& row);

}  // namespace ddprof
