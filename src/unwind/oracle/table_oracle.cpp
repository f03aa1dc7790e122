#include "unwind/oracle/table_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "elf/elf_file.hpp"
#include "elf/go_table.hpp"
#include "unwind/cfi_reader.hpp"
#include "unwind/compile.hpp"
#include "unwind/oracle/libdw_frames.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxDetails = 5;

// Our rule, evaluated for the same made-up machine.
std::optional<std::uint64_t> evaluate_cfa(const ddprof_unwind_rule& rule, const MachineState& machine,
                                          Architecture architecture) {
  const Registers& registers = machine.registers;
  const std::uint64_t word = word_bytes(architecture);
  const auto low = static_cast<std::int16_t>(rule.cfa_offset & 0xffff);
  const std::int64_t high = rule.cfa_offset >> 16;
  const auto plus = [](std::uint64_t value, std::int64_t offset) {
    return value + static_cast<std::uint64_t>(offset);
  };
  switch (rule.cfa) {
    case DDPROF_CFA_SP:
      return plus(registers.sp, rule.cfa_offset);
    case DDPROF_CFA_FP:
      return plus(registers.fp, rule.cfa_offset);
    case DDPROF_CFA_DEREF_SP:
      return plus(machine.read(plus(registers.sp, low)), high);
    case DDPROF_CFA_DEREF_FP:
      return plus(machine.read(plus(registers.fp, low)), high);
    case DDPROF_CFA_PLT:
      return registers.sp + word +
             (static_cast<std::int32_t>(registers.pc & 15) >= rule.cfa_offset ? word : 0);
    default:
      break;
  }
  if (rule.cfa < DDPROF_CFA_REGISTER) return std::nullopt;
  return plus(machine.register_value(rule.cfa - DDPROF_CFA_REGISTER, architecture), rule.cfa_offset);
}

OraclePlace evaluate_fp(const ddprof_unwind_rule& rule, std::uint64_t cfa, const MachineState& machine) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.fp_offset});
  switch (rule.fp_ra & 15) {
    case DDPROF_FP_SAME:
      return {OraclePlace::Kind::same, 0};
    case DDPROF_FP_AT_CFA:
      return {OraclePlace::Kind::at_address, cfa + offset};
    case DDPROF_FP_AT_FP:
      return {OraclePlace::Kind::at_address, machine.registers.fp + offset};
    default:
      return {};
  }
}

OraclePlace evaluate_return_address(const ddprof_unwind_rule& rule, std::uint64_t cfa, std::uint64_t word) {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.fp_offset});
  switch (rule.fp_ra >> 4) {
    case DDPROF_RA_AT_CFA_MINUS_8:
      return {OraclePlace::Kind::at_address, cfa - word};
    case DDPROF_RA_IN_LINK_REGISTER:
      return {OraclePlace::Kind::same, 0};
    case DDPROF_RA_AFTER_FP:
      return {OraclePlace::Kind::at_address, cfa + offset + word};
    case DDPROF_RA_AT_FP_OFFSET:
      return {OraclePlace::Kind::at_address, cfa + offset};
    case DDPROF_RA_IN_REGISTER:
      return {OraclePlace::Kind::in_register, offset};
    default:
      return {};
  }
}

class Comparison {
 public:
  Comparison(const UnwindTable& table, const RuleDictionary& dictionary, const LibdwFrames& libdw,
             const ElfFile& file, OracleReport& report)
      : table_(table),
        dictionary_(dictionary),
        libdw_(libdw),
        architecture_(file.architecture()),
        is_go_(GoFunctions::find(file).has_value()),
        report_(report) {}

  void compare_at(std::uint64_t address) {
    const ddprof_unwind_rule& rule = dictionary_[table_.find(address)];
    const MachineState machine = MachineState::make_up(address, architecture_);
    ++report_.compared;
    if (const char* difference = difference_of(rule, libdw_.find(address, machine), machine)) {
      ++report_.mismatches;
      if (report_.details.size() < kMaxDetails) {
        report_.details.push_back(fmt::format("{:#x}: {} (cfa {} {:+}, fp_ra {:#x} {:+})", address,
                                              difference, rule.cfa, rule.cfa_offset, rule.fp_ra,
                                              rule.fp_offset));
      }
    }
  }

 private:
  const char* difference_of(const ddprof_unwind_rule& rule, const std::optional<OracleFrame>& frame,
                            const MachineState& machine) {
    if (!frame && is_go_ && rule.cfa != DDPROF_CFA_GAP) {
      ++report_.untold_by_go;  // stripped, or the padding behind a function
      return nullptr;
    }
    if (!frame) return rule.cfa == DDPROF_CFA_GAP ? nullptr : "libdw has no frame";
    if (rule.cfa == DDPROF_CFA_GAP) return "gap where libdw has a frame";
    if (rule.cfa == DDPROF_CFA_UNSUPPORTED) {
      ++report_.unsupported;
      return nullptr;
    }
    if (frame->is_signal_frame != (rule.cfa == DDPROF_CFA_SIGNAL_FRAME)) return "signal frame";
    if (frame->is_signal_frame) return nullptr;
    const bool is_root = frame->return_address.kind == OraclePlace::Kind::undefined;
    const bool ends_stack = rule.cfa == DDPROF_CFA_END || rule.cfa == DDPROF_CFA_GO_SWITCH;
    if (is_go_ && !is_root && ends_stack) {
      ++report_.untold_by_go;
      return nullptr;
    }
    if (is_root != (rule.cfa == DDPROF_CFA_END)) return "root";
    return is_root ? nullptr : difference_of_places(rule, *frame, machine);
  }

  const char* difference_of_places(const ddprof_unwind_rule& rule, const OracleFrame& frame,
                                   const MachineState& machine) {
    const auto cfa = evaluate_cfa(rule, machine, architecture_);
    if (!cfa) return "cfa";
    if (frame.cfa_is_refused && (rule.cfa == DDPROF_CFA_SP || rule.cfa == DDPROF_CFA_FP)) {
      ++report_.refused;
      return nullptr;
    }
    if (cfa != frame.cfa) return "cfa";
    if (frame.sp != OraclePlace{OraclePlace::Kind::value, *cfa}) return "sp";
    if (evaluate_return_address(rule, *cfa, word_bytes(architecture_)) != frame.return_address)
      return "return address";
    const OraclePlace fp = evaluate_fp(rule, *cfa, machine);
    if (fp == frame.fp) return nullptr;
    if (is_go_ && frame.fp.kind == OraclePlace::Kind::same) {
      ++report_.untold_by_go;
      return nullptr;
    }
    if (fp.kind != OraclePlace::Kind::same) return "fp";
    if (frame.fp.kind == OraclePlace::Kind::undefined) return nullptr;
    const bool below_sp =
        frame.fp.kind == OraclePlace::Kind::at_address && frame.fp.number < machine.registers.sp;
    if (rule.cfa != DDPROF_CFA_SP || !below_sp) return "fp";
    ++report_.popped;
    return nullptr;
  }

  const UnwindTable& table_;
  const RuleDictionary& dictionary_;
  const LibdwFrames& libdw_;
  Architecture architecture_;
  bool is_go_;
  OracleReport& report_;
};

void compare_rows(const UnwindTable& table, std::size_t max_samples, Comparison& comparison) {
  const auto pages = table.pages();
  const auto rows = table.rows();
  const std::size_t step = std::max<std::size_t>(1, 2 * rows.size() / std::max<std::size_t>(1, max_samples));
  for (std::size_t page = 0; page + 1 < pages.size(); ++page) {
    const std::uint64_t page_begin = table.base() + (std::uint64_t{page} << table.page_shift());
    const std::uint64_t page_end =
        std::min(table.end(), page_begin + (std::uint64_t{1} << table.page_shift()));
    for (std::size_t row = pages[page]; row < pages[page + 1]; ++row) {
      if (row % step != 0) continue;
      comparison.compare_at(page_begin + rows[row].pc_low);
      comparison.compare_at((row + 1 < pages[page + 1] ? page_begin + rows[row + 1].pc_low : page_end) - 1);
    }
  }
}

}  // namespace

Result<OracleReport> compare_with_libdw(std::span<const std::byte> image, RuleDictionary& dictionary,
                                        std::size_t max_samples) {
  const ElfFile file = TRY(ElfFile::parse(image));
  OracleReport report;
  const auto before = std::chrono::steady_clock::now();
  const UnwindTable table = compile_unwind_table(file, dictionary);
  report.build_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
  report.rows = table.row_count();
  report.table_bytes = table.bytes();
  report.unsupported_rows = table.counters().unsupported_rows;
  report.bad_entries = table.counters().bad_entries;
  report.stray_entries = table.counters().stray_entries;
  if (table.empty()) return report;
  const LibdwFrames libdw(image, file.architecture());
  Comparison comparison(table, dictionary, libdw, file, report);
  compare_rows(table, max_samples, comparison);
  return report;
}

}  // namespace ddprof
