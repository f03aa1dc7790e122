#include <array>
#include <charconv>
#include <iterator>
#include <optional>

#include "base/output_file.hpp"
#include "base/read_file.hpp"
#include "stack_case.hpp"

namespace ddprof {

namespace {

template <std::size_t N>
std::optional<std::size_t> index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, kStopReasons> kReasonNames{
    "complete",     "truncated_copy", "no_unwind_info", "unsupported_rule", "bad_memory",
    "unknown_code", "depth_limit",    "no_registers",   "own_process",      "unread_unwind_info"};
constexpr std::array<std::string_view, 2> kArchitectureNames{"x86_64", "aarch64"};
constexpr std::array<std::string_view, 9> kCfaNames{"gap", "sp",     "fp",  "*sp",        "*fp",
                                                    "plt", "signal", "end", "unsupported"};
constexpr std::array<std::string_view, 3> kFpNames{"same", "cfa", "fp"};
constexpr std::array<std::string_view, 5> kRaNames{"cfa-8", "lr", "after-fp", "fp-offset", "register"};

// Takes the next word off a line.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

template <typename T>
bool parse_number(std::string_view word, T& value) {
  const bool is_hex = word.starts_with("0x");
  if (is_hex) word.remove_prefix(2);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, is_hex ? 16 : 10);
  return error == std::errc{} && end == word.data() + word.size();
}

bool parse_hex_byte(std::string_view word, std::byte& byte) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  byte = std::byte{static_cast<unsigned char>(value)};
  return error == std::errc{} && end == word.data() + word.size() && value < 256;
}

std::string cfa_name(std::uint8_t cfa) {
  if (cfa < kCfaNames.size()) return std::string(kCfaNames[cfa]);
  return fmt::format("r{}", cfa - DDPROF_CFA_REGISTER);
}

bool parse_cfa(std::string_view name, std::uint8_t& cfa) {
  if (const auto index = index_of(kCfaNames, name)) {
    cfa = static_cast<std::uint8_t>(*index);
    return true;
  }
  unsigned number = 0;
  if (!name.starts_with('r') || !parse_number(name.substr(1), number) || number >= Registers::kCount)
    return false;
  cfa = static_cast<std::uint8_t>(DDPROF_CFA_REGISTER + number);
  return true;
}

bool parse_rule(std::string_view line, ddprof_unwind_rule& rule) {
  std::size_t fp = 0;
  std::size_t ra = 0;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    std::optional<std::size_t> index;
    if (key == "cfa") {
      if (!parse_cfa(value, rule.cfa)) return false;
    } else if (key == "cfa_offset") {
      if (!parse_number(value, rule.cfa_offset)) return false;
    } else if (key == "fp_offset") {
      if (!parse_number(value, rule.fp_offset)) return false;
    } else if (key == "fp" && (index = index_of(kFpNames, value))) {
      fp = *index;
    } else if (key == "ra" && (index = index_of(kRaNames, value))) {
      ra = *index;
    } else {
      return false;
    }
  }
  rule.fp_ra = static_cast<std::uint8_t>(fp | (ra << 4));
  return true;
}

bool parse_row(std::string_view line, StackCaseModule& module) {
  StackCaseRow row;
  const std::string_view range = take_word(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return false;
  if (!parse_number(range.substr(0, dash), row.start) || !parse_number(range.substr(dash + 1), row.end))
    return false;
  if (row.start >= row.end || (!module.rows.empty() && row.start < module.rows.back().end)) return false;
  if (!parse_rule(line, row.rule)) return false;
  module.rows.push_back(row);
  return true;
}

bool parse_code(std::string_view line, StackCaseModule& module) {
  StackCaseCode code;
  if (!parse_number(take_word(line), code.elf_address)) return false;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (!parse_hex_byte(word, code.bytes.emplace_back())) return false;
  }
  module.code.push_back(std::move(code));
  return true;
}

bool parse_register(std::string_view line, Registers& registers) {
  const std::string_view name = take_word(line);
  std::uint64_t value = 0;
  if (!parse_number(take_word(line), value)) return false;
  if (name == "pc") {
    registers.pc = value;
  } else if (name == "sp") {
    registers.sp = value;
  } else if (name == "fp") {
    registers.fp = value;
  } else if (name == "lr") {
    registers.lr = value;
  } else {
    std::size_t number = 0;
    if (!parse_number(name, number) || number >= Registers::kCount) return false;
    registers.by_dwarf_number[number] = value;
  }
  return true;
}

bool parse_module(std::string_view line, StackCase& stack_case) {
  StackCaseModule module;
  if (!parse_number(take_word(line), module.start.value) ||
      !parse_number(take_word(line), module.end.value) || !parse_number(take_word(line), module.bias) ||
      module.start >= module.end) {
    return false;
  }
  const std::string_view id = take_word(line);
  std::array<std::byte, BuildId::kMaxBytes> bytes{};
  std::size_t size = 0;
  for (; id != "-" && size * 2 + 1 < id.size() && size < bytes.size(); ++size) {
    if (!parse_hex_byte(id.substr(size * 2, 2), bytes[size])) return false;
  }
  module.build_id = BuildId(std::span(bytes).first(size));
  module.name = take_word(line);
  stack_case.modules.push_back(std::move(module));
  return !stack_case.modules.back().name.empty();
}

bool parse_fact(std::string_view line, StackCase& stack_case) {
  const std::string_view key = take_word(line);
  if (key == "register") return parse_register(line, stack_case.registers);
  if (key == "module") return parse_module(line, stack_case);
  if (key == "signature") return parse_number(take_word(line), stack_case.pointer_authentication_bits);
  if (key == "frame") {
    stack_case.frames.emplace_back(take_word(line));
    return true;
  }
  if (key == "stack") {
    const bool is_valid = parse_number(take_word(line), stack_case.stack_start.value);
    stack_case.is_truncated = take_word(line) == "truncated";
    return is_valid;
  }
  if (key == "architecture") {
    const auto index = index_of(kArchitectureNames, take_word(line));
    if (index) stack_case.architecture = static_cast<Architecture>(*index);
    return index.has_value();
  }
  if (key == "reason") {
    const auto index = index_of(kReasonNames, take_word(line));
    if (index) stack_case.reason = static_cast<StopReason>(*index);
    return index.has_value();
  }
  return false;
}

template <typename Parse>
Result<void> for_each_line(std::string_view text, std::string_view what, const Parse& parse) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (!parse(line))
      return make_error(ErrorCode::corrupt, "parse {} line {}: '{}' is not understood", what, number, line);
  }
  return {};
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

std::string format_stack_case(const StackCase& stack_case) {
  std::string text;
  const auto out = std::back_inserter(text);
  const Registers& registers = stack_case.registers;
  fmt::format_to(out, "architecture {}\n",
                 kArchitectureNames[static_cast<std::size_t>(stack_case.architecture)]);
  if (stack_case.pointer_authentication_bits != 0) {
    fmt::format_to(out, "signature {:#x}\n", stack_case.pointer_authentication_bits);
  }
  fmt::format_to(out, "register pc {:#x}\nregister sp {:#x}\nregister fp {:#x}\n", registers.pc, registers.sp,
                 registers.fp);
  if (registers.lr != 0) fmt::format_to(out, "register lr {:#x}\n", registers.lr);
  for (std::size_t i = 0; i < Registers::kCount; ++i) {
    if (registers.by_dwarf_number[i] != 0)
      fmt::format_to(out, "register {} {:#x}\n", i, registers.by_dwarf_number[i]);
  }
  fmt::format_to(out, "stack {:#x} {}\n", stack_case.stack_start.value,
                 stack_case.is_truncated ? "truncated" : "whole");
  for (const StackCaseModule& module : stack_case.modules) {
    const std::string id = module.build_id.empty() ? "-" : module.build_id.hex();
    fmt::format_to(out, "module {:#x} {:#x} {:#x} {} {}\n", module.start.value, module.end.value, module.bias,
                   id, module.name);
  }
  for (const std::string& frame : stack_case.frames) fmt::format_to(out, "frame {}\n", frame);
  fmt::format_to(out, "reason {}\n", stop_reason_name(stack_case.reason));
  return text;
}

std::string format_stack_case_module(const StackCaseModule& module) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const auto& [start, end, rule] : module.rows) {
    fmt::format_to(out, "row {:#x}-{:#x} cfa={} cfa_offset={} fp={} ra={} fp_offset={}\n", start, end,
                   cfa_name(rule.cfa), rule.cfa_offset, kFpNames[(rule.fp_ra & 15) % kFpNames.size()],
                   kRaNames[(rule.fp_ra >> 4) % kRaNames.size()], rule.fp_offset);
  }
  for (const StackCaseCode& piece : module.code) {
    fmt::format_to(out, "code {:#x}", piece.elf_address);
    for (const std::byte byte : piece.bytes) fmt::format_to(out, " {:02x}", std::to_integer<unsigned>(byte));
    text += '\n';
  }
  return text;
}

Result<StackCase> parse_stack_case(std::string_view text) {
  StackCase stack_case;
  TRY(for_each_line(text, "case.txt", [&](std::string_view line) { return parse_fact(line, stack_case); }));
  return stack_case;
}

Result<void> parse_stack_case_module(std::string_view text, StackCaseModule& module) {
  return for_each_line(text, "module", [&](std::string_view line) {
    const std::string_view key = take_word(line);
    return key == "row" ? parse_row(line, module) : key == "code" && parse_code(line, module);
  });
}

namespace {

std::string module_file(std::size_t index) { return fmt::format("module.{}.unwind", index); }

}  // namespace

Result<void> write_stack_case(const std::filesystem::path& directory, const StackCase& stack_case) {
  const OutputFolder folder = TRY(OutputFolder::open(directory.string(), MissingFolders::make));
  TRY(folder.replace("case.txt", format_stack_case(stack_case)));
  const auto* bytes = reinterpret_cast<const char*>(stack_case.stack.data());
  TRY(folder.replace("stack.bin", {bytes, stack_case.stack.size()}));
  for (std::size_t i = 0; i < stack_case.modules.size(); ++i)
    TRY(folder.replace(module_file(i), format_stack_case_module(stack_case.modules[i])));
  return {};
}

Result<StackCase> read_stack_case(const std::filesystem::path& directory) {
  const std::string text = TRY(read_file((directory / "case.txt").string()));
  StackCase stack_case = TRY(parse_stack_case(text));
  const std::string stack = TRY(read_file((directory / "stack.bin").string()));
  const auto bytes = std::as_bytes(std::span(stack));
  stack_case.stack.assign(bytes.begin(), bytes.end());
  for (std::size_t i = 0; i < stack_case.modules.size(); ++i) {
    const std::string module_text = TRY(read_file((directory / module_file(i)).string()));
    TRY(parse_stack_case_module(module_text, stack_case.modules[i]));
  }
  return stack_case;
}

}  // namespace ddprof
