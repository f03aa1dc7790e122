#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option_table.hpp"

namespace ddprof {

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
