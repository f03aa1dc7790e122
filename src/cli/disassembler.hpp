#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/registers.hpp"
#include "base/result.hpp"

namespace ddprof {

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
