#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// A row of the option table in words: for help, man pages, completion and docs/commands.md.

// In the order in which they are described.
[[nodiscard]] std::span<const OptionGroup> option_groups();

// "99", "on", "random"; empty: nothing to say.
[[nodiscard]] std::string default_of(const OptionRow& row);

// "--frequency HZ", "--[no-]timeline"
[[nodiscard]] std::string long_form(const OptionRow& row);

// What it does, and the words that it knows: "how much the profiler says: debug, ..., error".
[[nodiscard]] std::string meaning_of(const OptionRow& row);

// The words that it knows, all that it takes or some.
[[nodiscard]] std::vector<std::string_view> words_of(const OptionRow& row);

// Options of a command, up to this level, group by group. Those without an effect are a promise to
// old scripts, not an offer: they are only among the extended ones.
[[nodiscard]] std::vector<const OptionRow*> options_of(Command command, OptionLevel deepest);

}  // namespace ddprof
