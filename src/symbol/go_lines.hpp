#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/frame.hpp"
#include "elf/elf_file.hpp"
#include "elf/go_table.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

// Names, lines and inlined calls of a Go program from the table of its runtime: stripped programs have them
// too. Nothing is read ahead: each look-up reads the few bytes that it needs from the file's image, which
// must outlive this. Foreign bytes: a look-up takes bounded time, whatever they say.
class GoLines {
 public:
  // None when this is no Go program, or one of a version that is not known (before 1.18).
  static std::optional<GoLines> find(const ElfFile& file);

  // Calls take() with the calls at an address as written in the ELF file. False when no function is there.
  // Texts live as long as the file's image. Nothing is found any more when the budget of many look-ups is
  // spent.
  bool find(std::uint64_t address, const std::function<void(std::span<const SourceCall>)>& take,
            WorkBudget* budget = nullptr) const;

  // False when only the outermost call of each address can be known.
  [[nodiscard]] bool knows_inlined_calls() const { return !function_data_.empty(); }

 private:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t name = 0;
    std::uint32_t start_line = 0;
    std::uint32_t files = 0;  // sequences, see GoSequence
    std::uint32_t lines = 0;
    std::uint32_t inlined = 0;
    std::uint32_t unit = 0;
    std::span<const std::byte> inlined_calls;
  };
  struct InlinedCall {
    std::uint32_t name = 0;
    std::uint32_t start_line = 0;
    std::uint64_t parent = 0;  // address of an instruction of the caller, at the call
  };
  class Lookup;

  explicit GoLines(const GoTable& table) : table_(table) {}
  [[nodiscard]] std::optional<Function> function_at(std::uint64_t address) const;
  [[nodiscard]] std::optional<Function> describe(std::size_t index) const;
  [[nodiscard]] std::span<const std::byte> inlined_calls_at(std::uint64_t field) const;
  [[nodiscard]] std::optional<InlinedCall> inlined_call(const Function& function, std::int32_t index) const;
  [[nodiscard]] std::string_view name_at(std::uint32_t offset) const;
  [[nodiscard]] std::string_view file_at(const Function& function, std::int32_t number) const;

  GoTable table_;
  std::span<const std::byte> function_data_;
};

}  // namespace ddprof
