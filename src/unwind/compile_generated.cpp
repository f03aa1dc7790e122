#include "unwind/compile_generated.hpp"

#include <elf.h>

#include <algorithm>

#include "unwind/cfi_index.hpp"
#include "unwind/cfi_program.hpp"
#include "unwind/cfi_rule.hpp"
#include "unwind/unwind_table_builder.hpp"

namespace ddprof {

namespace {

class GeneratedCompiler {
 public:
  GeneratedCompiler(std::span<const GeneratedCode> pieces, RuleDictionary& dictionary,
                    const ReadLimits& limits)
      : dictionary_(dictionary),
        base_(pieces.front().begin),
        limit_(base_ + std::min(pieces.back().end - base_, UnwindTableBuilder::kMaxSpan)),
        covered_until_(base_),
        limits_(limits),
        bytes_left_(limits.bytes() / 2),
        builder_(base_, limit_ - base_, std::min(pieces.size() * kRowsPerPiece, max_rows()), max_rows()) {}

  void add(const GeneratedCode& piece, Architecture architecture) {
    const bool is_inside = piece.begin >= covered_until_ && piece.end > piece.begin && piece.end <= limit_;
    if (!is_inside || piece.eh_frame.size() > bytes_left_) {
      ++(is_inside ? counters_.unread : counters_.stray_entries);
      return;
    }
    // Code that was moved often is read as often: this bounds time and memory.
    bytes_left_ -= piece.eh_frame.size();
    const ElfSegment segment{.type = PT_LOAD,
                             .flags = PF_X,
                             .vaddr = piece.begin - piece.moved_by,
                             .memsz = piece.end - piece.begin};
    const CfiSection section{.architecture = architecture, .data = piece.eh_frame, .vaddr = piece.vaddr};
    const CfiIndex index(section, CodeRanges({&segment, 1}), counters_, limits_);
    for (std::size_t entry = 0; entry < index.size(); ++entry) add_entry(index, entry, piece);
  }

  UnwindTable finish() && { return std::move(builder_).finish(covered_until_, counters_); }

 private:
  static constexpr std::size_t kRowsPerPiece = 6;  // as V8 makes them

  [[nodiscard]] std::size_t max_rows() const { return limits_.count(sizeof(ddprof_unwind_row), 4); }

  void add_entry(const CfiIndex& index, std::size_t entry, const GeneratedCode& piece) {
    const auto fde = index.fde(entry);
    const std::uint64_t begin = fde ? fde->begin + piece.moved_by : 0;
    if (!fde || begin < covered_until_) {
      ++counters_.stray_entries;
      return;
    }
    // What lies between is not known, and must not have the rule of what lies before.
    if (begin > covered_until_) builder_.add(covered_until_, RuleIndex::gap);
    std::uint64_t known_until = fde->begin;
    program_.start(index.section(), *fde);
    while (program_.next() && program_.row_begin() + piece.moved_by < piece.end) {
      const RuleIndex rule =
          dictionary_.intern(to_unwind_rule(program_.state(), *fde->cie, index.section().architecture));
      if (rule == RuleIndex::unsupported) ++counters_.unsupported_rows;
      builder_.add(program_.row_begin() + piece.moved_by, rule);
      known_until = program_.row_end();
    }
    if (program_.failed()) ++counters_.bad_entries;
    covered_until_ = std::min(known_until + piece.moved_by, piece.end);
  }

  RuleDictionary& dictionary_;
  std::uint64_t base_;
  std::uint64_t limit_;
  std::uint64_t covered_until_;
  ReadLimits limits_;
  std::uint64_t bytes_left_;
  UnwindTableBuilder builder_;
  UnwindTableCounters counters_;
  CfiProgram program_;
};

}  // namespace

UnwindTable compile_generated_code(std::span<const GeneratedCode> pieces, Architecture architecture,
                                   RuleDictionary& dictionary, const ReadLimits& limits) {
  if (pieces.empty()) return {};
  dictionary.start_generated_code();
  GeneratedCompiler compiler(pieces, dictionary, limits);
  for (const GeneratedCode& piece : pieces) compiler.add(piece, architecture);
  return std::move(compiler).finish();
}

}  // namespace ddprof
