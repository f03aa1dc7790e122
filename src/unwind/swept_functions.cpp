#include "unwind/swept_functions.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "unwind/instruction_x86_64.hpp"

namespace ddprof {

namespace {

using Flow = x86_64::Instruction::Flow;

// Of functions, by all compilers and in assembly that cares for speed.
constexpr std::uint64_t kAlignment = 16;
constexpr std::uint8_t kShortJumpBytes = 2;

bool is_padding(const x86_64::Instruction& instruction, std::span<const std::byte> code) {
  constexpr std::byte kTrap{0xcc};
  const bool is_zero = code.size() > 1 && code[0] == std::byte{0} && code[1] == std::byte{0};
  return instruction.is_nop || code[0] == kTrap || is_zero;
}

bool is_end(Flow flow) {
  return flow == Flow::ret || flow == Flow::jump || flow == Flow::indirect_jump || flow == Flow::stop;
}

// Of a branch or a short jump, both of which rarely leave a function. Parts that a compiler moved away, and
// functions that share their end, are farther off.
bool stays_inside(const x86_64::Instruction& instruction) {
  constexpr std::int64_t kFar = 4096;
  const bool is_short_jump = instruction.flow == Flow::jump && instruction.length == kShortJumpBytes;
  return (instruction.flow == Flow::branch || is_short_jump) && std::abs(*instruction.target) < kFar;
}

// One pass over a piece of code.
class Sweep {
 public:
  Sweep(std::uint64_t begin, std::uint64_t end, bool has_ended)
      : begin_(begin), end_(end), furthest_(begin), has_ended_(has_ended) {}

  void read(const x86_64::Instruction& instruction, std::uint64_t pc, bool is_padding) {
    const std::uint64_t next = pc + instruction.length;
    if (has_ended_ && !is_padding) begin_function(pc);
    if (instruction.target) follow(instruction, pc, next);
    // A call that does not return may be the last instruction of a function.
    has_ended_ = (has_ended_ && is_padding) ||
                 ((is_end(instruction.flow) || instruction.flow == Flow::call) && furthest_ < next);
  }

  [[nodiscard]] std::vector<std::uint64_t> starts() && {
    starts_.insert(starts_.end(), called_.begin(), called_.end());
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
    return std::move(starts_);
  }

 private:
  void begin_function(std::uint64_t pc) {
    if (pc % kAlignment != 0 && pc != begin_) return;
    starts_.push_back(pc);
    furthest_ = pc;
  }

  void follow(const x86_64::Instruction& instruction, std::uint64_t pc, std::uint64_t next) {
    const std::uint64_t target = pc + static_cast<std::uint64_t>(*instruction.target);
    if (target < begin_ || target >= end_) return;
    if (instruction.flow == Flow::call && target != next) called_.push_back(target);
    if (!stays_inside(instruction)) return;
    furthest_ = std::max(furthest_, target);
    // Back over what seemed to be a start, or to it: an aligned loop.
    while (!starts_.empty() && target < pc && target <= starts_.back() && starts_.back() != begin_)
      starts_.pop_back();
  }

  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t furthest_;  // where branches of this function lead to
  bool has_ended_;          // only padding has come since
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> called_;
};

}  // namespace

std::vector<std::uint64_t> sweep_for_functions(std::span<const std::byte> code, std::uint64_t begin,
                                               bool has_ended) {
  Sweep sweep(begin, begin + code.size(), has_ended);
  for (std::size_t at = 0; at < code.size();) {
    const auto rest = code.subspan(at);
    const auto instruction = x86_64::decode(rest);
    if (instruction) sweep.read(*instruction, begin + at, is_padding(*instruction, rest));
    at += instruction ? instruction->length : 1;  // data
  }
  return std::move(sweep).starts();
}

FunctionRange SweptFunctions::code_in(FunctionRange gap, std::uint64_t elf_address) const {
  for (const ElfSegment& segment : file_.segments()) {
    const bool is_code = segment.type == PT_LOAD && (segment.flags & PF_X) != 0;
    if (!is_code || elf_address < segment.vaddr || elf_address - segment.vaddr >= segment.filesz) continue;
    return {std::max(gap.begin, segment.vaddr), std::min(gap.end, segment.vaddr + segment.filesz)};
  }
  return {};
}

const SweptFunctions::Window* SweptFunctions::window_at(std::uint64_t begin, FunctionRange code) {
  const auto known = std::find_if(windows_.begin(), windows_.end(),
                                  [begin](const Window& window) { return window.begin == begin; });
  if (known != windows_.end()) return &*known;
  auto bytes = file_.data_at(begin);
  bytes = bytes.first(std::min<std::uint64_t>({bytes.size(), code.end - begin, kWindowBytes}));
  if (swept_bytes_ + bytes.size() > kMostBytes) return nullptr;
  swept_bytes_ += bytes.size();
  windows_.push_back({begin, sweep_for_functions(bytes, begin, begin == code.begin)});
  return &windows_.back();
}

std::optional<FunctionRange> SweptFunctions::find(std::uint64_t elf_address, const FunctionRanges& told) {
  const auto range = told.find(elf_address);
  return range ? range : find_in(told.gap_at(elf_address), elf_address);
}

std::optional<FunctionRange> SweptFunctions::find_in(FunctionRange gap, std::uint64_t elf_address) {
  if (file_.architecture() != Architecture::x86_64) return std::nullopt;
  const FunctionRange code = code_in(gap, elf_address);
  if (elf_address < code.begin || elf_address >= code.end) return std::nullopt;
  const std::uint64_t first = elf_address - (elf_address - code.begin) % kWindowBytes;
  std::uint64_t next = first + std::min(code.end - first, kWindowBytes);  // where the next function begins
  // What begins in a window may reach into the one behind it, not farther.
  for (std::uint64_t begin = first;; begin -= kWindowBytes) {
    const Window* window = window_at(begin, code);
    if (window == nullptr) return std::nullopt;
    const auto after = std::upper_bound(window->starts.begin(), window->starts.end(), elf_address);
    if (after != window->starts.end()) next = *after;
    if (after != window->starts.begin()) return FunctionRange{*std::prev(after), next};
    if (begin == code.begin || begin != first) return std::nullopt;
  }
}

std::size_t SweptFunctions::memory_bytes() const {
  std::size_t bytes = windows_.capacity() * sizeof(Window);
  for (const Window& window : windows_) bytes += window.starts.capacity() * sizeof(std::uint64_t);
  return bytes;
}

}  // namespace ddprof
