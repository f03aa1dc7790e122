#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"
#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "collect/perf/perf_record.hpp"

namespace ddprof {

// How one architecture's perf registers (asm/perf_regs.h) map to DWARF numbers. A sample holds the registers
// of its mask in ascending order of the kernel's numbers.
struct PerfRegisterTable {
  static constexpr std::size_t kMaxRegisters = 33;
  static constexpr std::int8_t kNone = -1;  // not asked for
  static constexpr std::int8_t kPc = -2;    // has a name but no DWARF number

  std::array<std::int8_t, kMaxRegisters> dwarf_number{};  // by the kernel's number
  std::array<std::int8_t, 8> arguments{};                 // DWARF numbers of the integer arguments
  std::uint32_t argument_count = 0;
  std::uint8_t sp = 0, fp = 0;  // DWARF numbers
  std::int8_t lr = kNone;
  std::uint64_t mask = 0;
  bool is_32_bit = false;
};

extern const PerfRegisterTable kPerfRegistersX86_64;
extern const PerfRegisterTable kPerfRegistersI386;  // with the mask of x86-64, as the kernel fills it
extern const PerfRegisterTable kPerfRegistersAarch64;
const PerfRegisterTable& native_perf_registers();
// Of a sample whose user code was of that kind (PERF_SAMPLE_REGS_ABI_*); null: it has none.
const PerfRegisterTable* perf_registers_of(std::uint64_t abi);

// Turns the registers of a sample (as many as the table's mask has bits; fewer stay 0) into DWARF order.
Registers to_registers(const PerfRegisterTable& table, std::span<const std::uint64_t> values);

// The integer argument `position` (from 1) of a function at its entry.
std::optional<std::uint64_t> argument_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t position);
// The register with the kernel's number.
std::optional<std::uint64_t> numbered_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t perf_number);

// What one sample stands for: its period, a field of its raw data or a register, times the event's scale.
std::int64_t sample_value(const EventSpec& spec, const SampleRecord& record, const Registers& registers);

// `time` is already CLOCK_MONOTONIC.
SampleEvent to_sample_event(const SampleRecord& record, const EventSpec& spec, std::uint32_t event,
                            Nanoseconds time);
MapEvent to_map_event(const MmapRecord& record, Nanoseconds time);

// The value of a counter that was on for only part of the time, scaled to all of it.
std::int64_t scaled_value(const ReadRecord& record);

// xorshift, which is good enough for coins.
class Coins {
 public:
  std::uint64_t next() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_;
  }
  // From 0 to 1.
  double fraction() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15U;
};

// Takes fewer samples, each of which stands for more. Events of a CPU are slowed down in the kernel. Events
// that tasks inherit cannot be (each copy keeps its own period, and threads swap copies), so of their samples
// each is taken with a probability, and one that is taken stands for those that are not: without a bias.
class Thinning {
 public:
  void set_factor(std::uint32_t factor, std::uint64_t now) {
    before_ = factor_;
    factor_ = factor == 0 ? 1 : factor;
    changed_at_ = now;
  }

  // What to multiply the value of a sample of a task with; 0: leave it out.
  double draw_weight() {
    if (factor_ == 1) return 1;
    return (random_.next() >> 11U) % factor_ == 0 ? factor_ : 0;
  }

  // True with that probability.
  bool draw(double probability) { return random_.fraction() < probability; }
  [[nodiscard]] std::uint32_t factor() const { return factor_; }

  // What to multiply the value of a sample with that a slowed event took at `time`: the kernel goes on to
  // report the period that it was opened with.
  [[nodiscard]] double weight_at(std::uint64_t time) const {
    return slowed(time < changed_at_ ? before_ : factor_);
  }
  // How many times the period a slowed event has. No power of two: eight times 1.001 ms would walk in step
  // with the tick at which the scheduler changes threads, and see each at the same point of its turn.
  [[nodiscard]] static double slowed(std::uint32_t factor) { return factor == 1 ? 1 : factor - 1.0 / 3; }

 private:
  std::uint32_t factor_ = 1;
  std::uint32_t before_ = 1;
  std::uint64_t changed_at_ = 0;
  Coins random_;
};

}  // namespace ddprof
