#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/registers.hpp"
#include "base/result.hpp"
#include "elf/elf_file.hpp"
#include "profile/profile.hpp"
#include "symbol/symbol_table.hpp"
#include "unwind/function_ranges.hpp"

namespace ddprof {

// The file behind a mapping of a profile, when it is still the one that was profiled.
class MappedCode {
 public:
  // Fails when the file is gone, is no program, or has another build id than the profile says.
  static Result<MappedCode> open(const Profile& profile, const ProfileMapping& mapping);

  [[nodiscard]] const ElfFile& elf() const { return elf_; }
  // False when the profile has no build id to compare with.
  [[nodiscard]] bool is_verified() const { return is_verified_; }
  // Those that cover some of these addresses, by address.
  [[nodiscard]] std::map<std::uint64_t, Symbol> symbols_at(std::vector<std::uint64_t> addresses) const;
  // For code that no symbol covers.
  [[nodiscard]] const FunctionRanges& functions() const { return functions_; }

 private:
  MappedCode(MappedRegion image, ElfFile elf, bool is_verified)
      : image_(std::move(image)), elf_(std::move(elf)), functions_(elf_), is_verified_(is_verified) {}

  MappedRegion image_;  // what elf_ looks at
  ElfFile elf_;
  FunctionRanges functions_;
  bool is_verified_;
};

// The address in the file of an address in the process.
std::optional<std::uint64_t> elf_address(const ElfFile& elf, const ProfileMapping& mapping, Address address);

struct Instruction {
  std::uint64_t address = 0;
  std::size_t size = 0;
  std::string text;          // "call 0x1234"
  std::uint64_t target = 0;  // of a direct jump or call; 0: none
};

// Turns machine code into text. The library behind it (Capstone) is known to its source file only.
class Disassembler {
 public:
  static Result<Disassembler> open(Architecture architecture);

  // Bytes that are no instruction are listed as data, so that all of `code` is covered.
  [[nodiscard]] std::vector<Instruction> disassemble(std::span<const std::byte> code,
                                                     std::uint64_t address) const;

 private:
  struct Close {
    void operator()(const std::size_t* handle) const;
  };
  using Handle = std::unique_ptr<const std::size_t, Close>;

  Disassembler(Handle handle, std::size_t smallest) : handle_(std::move(handle)), smallest_(smallest) {}

  Handle handle_;
  std::size_t smallest_;  // bytes of the shortest instruction
};

}  // namespace ddprof
