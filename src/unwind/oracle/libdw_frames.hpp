#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/registers.hpp"

namespace ddprof {

// Made-up machine state: registers with distinct values, and memory where each word is a function of its
// address.
struct MachineState {
  Registers registers;
  [[nodiscard]] std::uint64_t read(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t register_value(std::uint64_t number, Architecture architecture) const;
  static MachineState make_up(std::uint64_t pc, Architecture architecture);
};

// Where a register's caller value is, according to libdw.
struct OraclePlace {
  enum class Kind : std::uint8_t { undefined, same, at_address, value, in_register, unknown };
  Kind kind = Kind::unknown;
  std::uint64_t number = 0;  // the address, value or register

  friend bool operator==(const OraclePlace&, const OraclePlace&) = default;
};

// rbx and r12 to r15, by their DWARF numbers: what x86-64 code keeps besides the stack and the frame pointer.
inline constexpr std::array<unsigned, 5> kOtherKeptRegisters{3, 12, 13, 14, 15};

struct OracleFrame {
  bool is_signal_frame = false;
  bool cfa_is_refused = false;       // libdw calls the rule invalid
  std::optional<std::uint64_t> cfa;  // nothing: libdw cannot compute it
  OraclePlace sp;
  OraclePlace fp;
  OraclePlace return_address;
  std::array<OraclePlace, kOtherKeptRegisters.size()> kept;
};

// libdw's CFI of one ELF image: .eh_frame first, then .debug_frame.
class LibdwFrames {
 public:
  explicit LibdwFrames(std::span<const std::byte> image, Architecture architecture);
  ~LibdwFrames();
  LibdwFrames(const LibdwFrames&) = delete;
  LibdwFrames& operator=(const LibdwFrames&) = delete;

  // Nothing when no FDE covers the address.
  [[nodiscard]] std::optional<OracleFrame> find(std::uint64_t elf_address, const MachineState& machine) const;

 private:
  Architecture architecture_;
  std::vector<std::byte> image_;  // libdw marks in it what it has decompressed
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;
  Dwarf_CFI* debug_frame_ = nullptr;
};

}  // namespace ddprof
