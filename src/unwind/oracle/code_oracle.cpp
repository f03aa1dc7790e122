#include "unwind/oracle/code_oracle.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <ctime>
#include <optional>

#include "elf/elf_file.hpp"
#include "unwind/cfi_index.hpp"
#include "unwind/compile.hpp"
#include "unwind/no_return_functions.hpp"
#include "unwind/oracle/libdw_frames.hpp"

namespace ddprof {

namespace {

using x86_64::Instruction;
using Effect = Instruction::Effect;
using Flow = Instruction::Flow;

constexpr std::uint32_t kUnknownHeight = UINT32_MAX;

// How far the CFA is above the stack pointer, where CFI gives the CFA by another register, and whether rbp is
// still the caller's: from the first instruction of each function along its control flow, told anew wherever
// CFI says it.
class StackHeights {
 public:
  StackHeights(CodeBytes code, const UnwindTable& table, const RuleDictionary& rules)
      : code_(code),
        table_(table),
        rules_(rules),
        heights_(code.bytes.size(), kUnknownHeight),
        fp_is_callers_(code.bytes.size()),
        is_entry_(code.bytes.size()),
        cfi_is_wrong_(code.bytes.size()) {}

  void add_entry(std::uint64_t begin) {
    if (begin - code_.begin < is_entry_.size() && is_entry(begin)) is_entry_[begin - code_.begin] = true;
  }

  // After all entries: what lies before one of them may end in a call that does not return.
  void follow_from(std::uint64_t begin) {
    if (begin - code_.begin >= is_entry_.size() || rule(begin).cfa != DDPROF_CFA_SP) return;
    pending_.push_back({begin, static_cast<std::uint32_t>(rule(begin).cfa_offset), is_entry(begin)});
    is_entry_[begin - code_.begin] = false;
    while (!pending_.empty()) {
      const auto [pc, height, fp_is_callers] = pending_.back();
      pending_.pop_back();
      follow(pc, height, fp_is_callers);
    }
    is_entry_[begin - code_.begin] = is_entry(begin);
  }

  [[nodiscard]] std::optional<std::int64_t> at(std::uint64_t pc) const {
    const ddprof_unwind_rule& known = rule(pc);
    if (known.cfa == DDPROF_CFA_SP) return known.cfa_offset;
    const std::uint32_t height = heights_[pc - code_.begin];
    if (height == kUnknownHeight || height == kUnknownHeight - 1) return std::nullopt;
    return height;
  }

  [[nodiscard]] bool fp_is_callers(std::uint64_t pc) const { return fp_is_callers_[pc - code_.begin]; }

  // The instructions from the entry to here have moved the stack pointer otherwise than CFI says.
  [[nodiscard]] bool cfi_is_wrong(std::uint64_t pc) const { return cfi_is_wrong_[pc - code_.begin]; }
  [[nodiscard]] bool is_reached(std::uint64_t pc) const {
    return heights_[pc - code_.begin] != kUnknownHeight;
  }

 private:
  [[nodiscard]] const ddprof_unwind_rule& rule(std::uint64_t pc) const { return rules_[table_.find(pc)]; }

  [[nodiscard]] bool is_entry(std::uint64_t pc) const {
    return rule(pc).cfa == DDPROF_CFA_SP && rule(pc).cfa_offset == 8;
  }

  void follow(std::uint64_t pc, std::uint32_t height, bool fp_is_callers) {
    bool is_after_call = false;
    while (pc - code_.begin < heights_.size() && heights_[pc - code_.begin] == kUnknownHeight &&
           !is_entry_[pc - code_.begin]) {
      const ddprof_unwind_rule& known = rule(pc);
      if (known.cfa == DDPROF_CFA_SP && height != static_cast<std::uint32_t>(known.cfa_offset)) {
        // Behind a call that does not return other code begins. Anywhere else the stack pointer is where the
        // instructions have moved it.
        if (!is_after_call && height != kUnknownHeight - 1) {
          cfi_is_wrong_[pc - code_.begin] = true;
        } else {
          height = static_cast<std::uint32_t>(known.cfa_offset);
        }
      }
      if (known.cfa == DDPROF_CFA_GAP || height == kUnknownHeight) return;
      heights_[pc - code_.begin] = height;
      fp_is_callers_[pc - code_.begin] = fp_is_callers;
      const auto instruction = x86_64::decode(code_.at(pc));
      if (!instruction) return;
      height = after(*instruction, known, height);
      if (writes_fp(*instruction)) fp_is_callers = false;
      is_after_call = instruction->flow == Flow::call;
      const std::uint64_t target = pc + static_cast<std::uint64_t>(instruction->target.value_or(0));
      if (instruction->flow == Flow::branch && height != kUnknownHeight)
        pending_.push_back({target, height, fp_is_callers});
      switch (instruction->flow) {
        case Flow::jump:
          pc = target;
          break;
        case Flow::next:
        case Flow::call:
        case Flow::branch:
          pc += instruction->length;
          break;
        default:
          return;
      }
    }
  }

  static bool writes_fp(const Instruction& instruction) {
    const bool has_target = instruction.effect == Effect::add || instruction.effect == Effect::load ||
                            instruction.effect == Effect::pop || instruction.effect == Effect::exchange;
    const bool is_fp = instruction.to == x86_64::kRbp ||
                       (instruction.effect == Effect::exchange && instruction.from == x86_64::kRbp);
    return (instruction.writes >> x86_64::kRbp & 1) != 0 || (has_target && is_fp) ||
           instruction.effect == Effect::leave || instruction.effect == Effect::enter;
  }

  static std::uint32_t after(const Instruction& instruction, const ddprof_unwind_rule& known,
                             std::uint32_t height) {
    if ((instruction.writes >> x86_64::kRsp & 1) != 0) return kUnknownHeight - 1;
    const bool is_unknown = height == kUnknownHeight - 1;
    switch (instruction.effect) {
      case Effect::push:
        return is_unknown ? height : height + 8;
      case Effect::pop:
        return is_unknown ? height : height - 8;
      case Effect::add:
        if (instruction.to != x86_64::kRsp) return height;
        if (instruction.from == x86_64::kRsp)
          return is_unknown ? height : height - static_cast<std::uint32_t>(instruction.value);
        if (instruction.from != x86_64::kRbp || known.cfa != DDPROF_CFA_FP) return kUnknownHeight - 1;
        return static_cast<std::uint32_t>(known.cfa_offset - instruction.value);
      case Effect::load:
      case Effect::exchange:
        return instruction.to == x86_64::kRsp ? kUnknownHeight - 1 : height;
      case Effect::leave:
        return known.cfa == DDPROF_CFA_FP ? static_cast<std::uint32_t>(known.cfa_offset) - 8
                                          : kUnknownHeight - 1;
      default:
        return height;
    }
  }

  CodeBytes code_;
  const UnwindTable& table_;
  const RuleDictionary& rules_;
  std::vector<std::uint32_t> heights_;
  std::vector<bool> fp_is_callers_;
  std::vector<bool> is_entry_;
  std::vector<bool> cfi_is_wrong_;
  struct Pending {
    std::uint64_t pc;
    std::uint32_t height;
    bool fp_is_callers;
  };
  std::vector<Pending> pending_;
};

// Places as distances from the CFA of the CFI.
struct Distances {
  std::optional<std::int64_t> sp;  // sp - CFA
  std::optional<std::int64_t> fp;
};

struct Place {
  bool is_known = false;
  bool is_same = false;
  std::int64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

Place fp_place(const ddprof_unwind_rule& rule, const Distances& frame) {
  switch (rule.fp_ra & 15) {
    case DDPROF_FP_SAME:
      return {true, true, 0};
    case DDPROF_FP_AT_CFA:
      if (frame.sp && rule.fp_offset < *frame.sp) return {true, true, 0};  // popped
      return {true, false, rule.fp_offset};
    default:
      if (!frame.fp) return {};
      return {true, false, *frame.fp + rule.fp_offset};
  }
}

// Of this thread: other programs of the machine do not count.
std::uint64_t cpu_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U + static_cast<std::uint64_t>(now.tv_nsec);
}

class CodeComparison {
 public:
  CodeComparison(CodeWalk& walk, const StackHeights& heights, const LibdwFrames& libdw,
                 CodeOracleReport& report, std::size_t max_details)
      : walk_(walk), heights_(heights), libdw_(libdw), report_(report), max_details_(max_details) {}

  void compare(std::uint64_t pc, const ddprof_unwind_rule& cfi) {
    const bool is_frame = cfi.cfa == DDPROF_CFA_SP || cfi.cfa == DDPROF_CFA_FP ||
                          cfi.cfa == DDPROF_CFA_DEREF_SP || cfi.cfa == DDPROF_CFA_DEREF_FP ||
                          cfi.cfa >= DDPROF_CFA_REGISTER;
    if (!is_frame) return;
    ++report_.addresses;
    const std::uint64_t before = cpu_nanoseconds();
    const CodeRow row = walk_.find(pc);
    report_.nanoseconds.push_back(static_cast<std::uint32_t>(cpu_nanoseconds() - before));
    report_.instructions.push_back(row.instructions);
    ++report_.outcomes[static_cast<std::size_t>(row.outcome)];
    if (row.outcome != CodeRow::Outcome::rule) return;
    switch (judge(pc, row.rule, cfi)) {
      case Verdict::same:
        ++report_.same;
        return compare_places(pc, row, cfi);
      case Verdict::incomparable:
        ++report_.incomparable;
        return note("not comparable", pc, row, cfi);
      case Verdict::wrong_cfi:
        ++report_.wrong_cfi;
        return note("wrong CFI", pc, row, cfi);
      case Verdict::other_cfa:
        ++report_.other_cfa;
        return note("cfa", pc, row, cfi);
      case Verdict::other_fp:
        ++report_.other_fp;
        return note("fp", pc, row, cfi);
    }
  }

 private:
  enum class Verdict : std::uint8_t { same, incomparable, wrong_cfi, other_cfa, other_fp };

  void compare_places(std::uint64_t pc, const CodeRow& row, const ddprof_unwind_rule& cfi) {
    const auto machine = MachineState::make_up(pc, Architecture::x86_64);
    const auto frame = libdw_.find(pc, machine);
    const auto height = heights_.at(pc);
    if (!frame || !frame->cfa || !height) return;
    for (std::size_t i = 0; i < kOtherKeptRegisters.size(); ++i) {
      const RegisterPlace ours = walk_.place_of(kOtherKeptRegisters[i]);
      const OraclePlace& theirs = frame->kept[i];
      const bool is_saved = theirs.kind == OraclePlace::Kind::at_address;
      const auto saved_at = static_cast<std::int64_t>(theirs.number - *frame->cfa);  // from the CFA
      const bool is_popped = is_saved && saved_at < -*height;
      const bool is_unchanged = ours.where == RegisterPlace::Where::unchanged;
      if (ours.where == RegisterPlace::Where::unknown) {
        ++report_.unknown_places;
        continue;
      }
      // Saved, and CFI does not say so yet: compilers tell of several pushes at once.
      if (!is_unchanged && !is_saved) {
        ++report_.early_places;
        continue;
      }
      const bool is_at_sp = ours.where == RegisterPlace::Where::at_sp;
      if (!is_unchanged && !is_at_sp && cfi.cfa != DDPROF_CFA_FP) continue;
      const std::int64_t base = is_at_sp ? -*height : -std::int64_t{cfi.cfa_offset};
      const bool is_same = is_unchanged ? !is_saved || is_popped : saved_at == base + ours.offset;
      ++report_.places;
      if (is_same) continue;
      ++report_.other_places;
      note(fmt::format("register {} at {} {:+}, CFI {} {:+}", kOtherKeptRegisters[i],
                       static_cast<int>(ours.where), ours.offset, static_cast<int>(theirs.kind), saved_at)
               .c_str(),
           pc, row, cfi);
    }
  }

  [[nodiscard]] Verdict judge(std::uint64_t pc, const ddprof_unwind_rule& ours,
                              const ddprof_unwind_rule& cfi) const {
    Distances frame;
    if (const auto height = heights_.at(pc)) frame.sp = -*height;
    if (cfi.cfa == DDPROF_CFA_FP) frame.fp = -cfi.cfa_offset;
    const auto cfa = cfa_of(ours, cfi, frame);
    if (!cfa) return Verdict::incomparable;
    if (*cfa != 0) return heights_.cfi_is_wrong(pc) ? Verdict::wrong_cfi : Verdict::other_cfa;
    const Place our_fp = fp_place(ours, frame);
    const Place their_fp = fp_place(cfi, frame);
    if (!our_fp.is_known || !their_fp.is_known) return Verdict::incomparable;
    // Saved and not overwritten yet: the slot and the register hold the same.
    const bool is_either = our_fp.is_same != their_fp.is_same && heights_.fp_is_callers(pc);
    if (our_fp == their_fp || is_either) return Verdict::same;
    const bool is_overwritten = heights_.is_reached(pc) && !heights_.fp_is_callers(pc);
    return their_fp.is_same && is_overwritten ? Verdict::wrong_cfi : Verdict::other_fp;
  }

  // Our CFA, from theirs.
  static std::optional<std::int64_t> cfa_of(const ddprof_unwind_rule& ours, const ddprof_unwind_rule& cfi,
                                            const Distances& frame) {
    if (ours.cfa == cfi.cfa && ours.cfa_offset == cfi.cfa_offset) return 0;
    const bool is_loaded = cfi.cfa == DDPROF_CFA_DEREF_SP || cfi.cfa == DDPROF_CFA_DEREF_FP;
    if (ours.cfa == cfi.cfa && !is_loaded) return ours.cfa_offset - cfi.cfa_offset;
    if (ours.cfa == DDPROF_CFA_SP && frame.sp) return *frame.sp + ours.cfa_offset;
    if (ours.cfa == DDPROF_CFA_FP && frame.fp) return *frame.fp + ours.cfa_offset;
    return std::nullopt;
  }

  void note(const char* what, std::uint64_t pc, const CodeRow& row, const ddprof_unwind_rule& cfi) {
    if (report_.details.size() >= max_details_) return;
    const auto text = [](const ddprof_unwind_rule& rule) {
      return fmt::format("cfa {} {:+} fp {} {:+}", rule.cfa, rule.cfa_offset, rule.fp_ra, rule.fp_offset);
    };
    report_.details.push_back(fmt::format("{:#x}: {}: code {}, CFI {}", pc, what, text(row.rule), text(cfi)));
  }

  CodeWalk& walk_;
  const StackHeights& heights_;
  const LibdwFrames& libdw_;
  CodeOracleReport& report_;
  std::size_t max_details_;
};

bool ends_block(Flow flow) {
  return flow == Flow::ret || flow == Flow::jump || flow == Flow::indirect_jump || flow == Flow::stop;
}

}  // namespace

Result<CodeOracleReport> compare_code_with_cfi(std::span<const std::byte> image, std::size_t stride,
                                               std::size_t max_details) {
  const ElfFile file = TRY(ElfFile::parse(image));
  CodeOracleReport report;
  RuleDictionary dictionary;
  const UnwindTable table = compile_unwind_table(file, dictionary);
  const auto eh_frame = file.find_eh_frame();
  if (!eh_frame || table.empty()) return report;
  UnwindTableCounters counters;
  const CodeRanges ranges(file.segments());
  const CfiIndex index({.data = eh_frame->data, .vaddr = eh_frame->vaddr}, ranges, counters);
  const NoReturnFunctions no_return = NoReturnFunctions::find(file);
  const LibdwFrames libdw(image, Architecture::x86_64);
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0) continue;
    const CodeBytes code{segment.vaddr, image.subspan(segment.offset, segment.filesz)};
    StackHeights heights(code, table, dictionary);
    for (std::size_t i = 0; i < index.size(); ++i) heights.add_entry(index.begin_of(i));
    for (std::size_t i = 0; i < index.size(); ++i) heights.follow_from(index.begin_of(i));
    CodeWalk walk;
    walk.start(code, &no_return);
    CodeComparison comparison(walk, heights, libdw, report, max_details);
    std::size_t count = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const auto fde = index.fde(i);
      if (!fde || fde->begin - code.begin >= code.bytes.size()) continue;
      bool is_padding = false;
      for (std::uint64_t pc = fde->begin; pc < fde->end;) {
        const auto instruction = x86_64::decode(code.at(pc));
        if (!instruction) break;
        is_padding = is_padding && instruction->is_nop;
        if (!is_padding && count++ % stride == 0) comparison.compare(pc, dictionary[table.find(pc)]);
        pc += instruction->length;
        is_padding = is_padding || ends_block(instruction->flow);
      }
    }
  }
  return report;
}

}  // namespace ddprof
