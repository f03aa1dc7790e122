#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "elf/elf_file.hpp"
#include "profile/profile.hpp"
#include "symbol/symbol_table.hpp"

namespace ddprof {

// The file behind a mapping of a profile, when it is still the one that was profiled.
class MappedCode {
 public:
  // Fails when the file is gone, is no program, or has another build id than the profile says.
  static Result<MappedCode> open(const Profile& profile, const ProfileMapping& mapping);

  [[nodiscard]] const ElfFile& elf() const { return elf_; }
  // False when the profile has no build id to compare with.
  [[nodiscard]] bool is_verified() const { return is_verified_; }
  [[nodiscard]] const SymbolTable& symbols() const { return symbols_; }

 private:
  MappedCode(MappedRegion image, ElfFile elf, bool is_verified)
      : image_(std::move(image)),
        elf_(std::move(elf)),
        symbols_(SymbolTable::build(elf_).value_or({})),
        is_verified_(is_verified) {}

  MappedRegion image_;  // what elf_ looks at
  ElfFile elf_;
  SymbolTable symbols_;
  bool is_verified_;
};

// The address in the file of an address in the process.
std::optional<std::uint64_t> elf_address(const ElfFile& elf, const ProfileMapping& mapping, Address address);

}  // namespace ddprof
