#include "elf/go_functions.hpp"

#include "elf/load.hpp"

namespace ddprof {

namespace {

// A description: offset of the code, of the name, size of arguments, offset of the deferred return, of the
// sequences of stack sizes, files, lines; count of further sequences; unit; as of 1.20 the first line; kind,
// flags.
constexpr std::uint64_t kStackSizesField = 16;
constexpr std::uint64_t kFlagsField118 = 37;
constexpr std::uint64_t kFlagsField120 = 41;
constexpr std::uint8_t kFlagOutermost = 1;
constexpr std::uint8_t kFlagMovesStack = 2;

}  // namespace

std::optional<GoFunctions> GoFunctions::find(const ElfFile& file) {
  if (file.architecture() != Architecture::x86_64) return std::nullopt;
  const auto table = GoTable::find(file);
  if (!table) return std::nullopt;
  return GoFunctions(*table);
}

std::optional<GoFunctions::Function> GoFunctions::function(std::size_t index) const {
  const auto description = load<std::uint32_t>(table_.functions, index * GoTable::kEntryBytes + 4);
  const std::uint64_t at = description.value_or(0);
  const auto sizes = load<std::uint32_t>(table_.functions, at + kStackSizesField);
  const auto flags =
      load<std::uint8_t>(table_.functions, at + (table_.has_start_lines ? kFlagsField120 : kFlagsField118));
  if (!description || !sizes || !flags) return std::nullopt;
  Function function{.begin = begin_of(index), .end = begin_of(index + 1)};
  if (function.end <= function.begin) return std::nullopt;
  function.is_outermost = (*flags & kFlagOutermost) != 0;
  function.moves_stack = (*flags & kFlagMovesStack) != 0;
  function.stack_sizes = *sizes;
  return function;
}

}  // namespace ddprof
