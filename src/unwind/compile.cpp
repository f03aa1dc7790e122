#include "unwind/compile.hpp"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "elf/go_table.hpp"
#include "unwind/cfi_index.hpp"
#include "unwind/cfi_program.hpp"
#include "unwind/cfi_rule.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
// Measured over the files of a Debian system: 5.4 to 6.4 bytes of .eh_frame give a row.
constexpr std::size_t kBytesPerRow = 5;

// Rows of 4 bytes: up to half of what a file may take beyond those that its size lets expect.
std::size_t max_rows(std::size_t expected_rows, const ReadLimits& limits) {
  return std::max(expected_rows, limits.count(sizeof(ddprof_unwind_row), 2));
}

CfiSection eh_frame_of(const ElfFile& file, const ReadLimits& limits, UnwindTableCounters& counters) {
  CfiSection section = eh_frame_section(file);
  if (section.data.size() <= limits.bytes()) return section;
  ++counters.unread;
  section.data = {};
  return section;
}

// `storage` keeps the bytes of a compressed section.
CfiSection debug_frame_of(const ElfFile& file, std::vector<std::byte>& storage, const ReadLimits& limits,
                          UnwindTableCounters& counters) {
  CfiSection section{.kind = CfiSection::Kind::debug_frame, .architecture = file.architecture()};
  const auto found = file.find_section(".debug_frame");
  if (!found || found->data.empty()) return section;
  if (!found->is_compressed()) {
    if (found->data.size() > limits.bytes())
      ++counters.unread;
    else
      section.data = found->data;
    return section;
  }
  auto bytes = file.uncompressed(*found, limits.bytes());
  if (!bytes) ++(bytes.error().code == ErrorCode::exhausted ? counters.unread : counters.bad_entries);
  storage = std::move(bytes).value_or({});
  section.data = storage;
  return section;
}

// In Go's code a frame begins with the return address and, where it is not empty, the caller's frame pointer.
ddprof_unwind_rule go_rule(std::int32_t stack_bytes) {
  ddprof_unwind_rule rule{};
  rule.cfa = DDPROF_CFA_SP;
  rule.cfa_offset = stack_bytes + 8;
  if (stack_bytes > 0) {
    rule.fp_ra = DDPROF_FP_AT_CFA;
    rule.fp_offset = -16;
  }
  return rule;
}

// Walks Go's functions and the FDEs of both sections in address order and writes the rows of each into the
// table.
class Compiler {
 public:
  Compiler(const GoFunctions* go, const CfiIndex& eh_frame, const CfiIndex& debug_frame,
           const CodeRanges& code, RuleDictionary& dictionary, const ReadLimits& limits,
           UnwindTableCounters counters, std::size_t expected_rows)
      : go_(go),
        eh_frame_(eh_frame),
        debug_frame_(debug_frame),
        dictionary_(dictionary),
        counters_(counters),
        code_begin_(code.begin()),
        code_end_(code.end()),
        covered_until_(first_address()),
        max_rows_(max_rows(expected_rows, limits)),
        builder_(covered_until_, code_end_ - covered_until_, expected_rows, max_rows_) {}

  UnwindTable run() && {
    std::size_t eh = 0;
    std::size_t debug = 0;
    std::size_t go = 0;
    while (eh < eh_frame_.size() || debug < debug_frame_.size() || go < go_count()) {
      const std::uint64_t eh_begin = begin_or_never(eh_frame_, eh);
      const std::uint64_t debug_begin = begin_or_never(debug_frame_, debug);
      const std::uint64_t go_begin = go < go_count() ? go_->begin_of(go) : kNever;
      if (go_begin <= std::min(eh_begin, debug_begin)) {
        add_go_function(go);
        ++go;
      } else if (eh_begin <= debug_begin) {
        // An entry of .eh_frame does not yield to .debug_frame.
        add_entry(eh_frame_, eh, std::min(go_begin, begin_or_never(eh_frame_, eh + 1)));
        ++eh;
      } else {
        if (debug_begin >= covered_until_) {
          add_entry(debug_frame_, debug,
                    std::min({go_begin, eh_begin, begin_or_never(debug_frame_, debug + 1)}));
        }
        ++debug;
      }
    }
    return std::move(builder_).finish(covered_until_, counters_);
  }

 private:
  static std::uint64_t begin_or_never(const CfiIndex& index, std::size_t entry) {
    return entry < index.size() ? index.begin_of(entry) : kNever;
  }

  [[nodiscard]] std::uint64_t first_address() const {
    const std::uint64_t go_begin = go_count() > 0 ? std::max(go_->begin_of(0), code_begin_) : kNever;
    return std::min({go_begin, begin_or_never(eh_frame_, 0), begin_or_never(debug_frame_, 0), code_end_});
  }

  [[nodiscard]] std::size_t go_count() const { return go_ != nullptr ? go_->size() : 0; }

  // Where the runtime moves to another stack, what lies above is another function's; for this stack it is the
  // root. Two functions come back, and the walk may go on with who called them.
  void add_go_function(std::size_t index) {
    const auto function = go_->function(index);
    if (!function || function->begin < std::max(covered_until_, code_begin_) || function->end > code_end_) {
      ++counters_.stray_entries;
      return;
    }
    if (function->begin > covered_until_) builder_.add(covered_until_, RuleIndex::gap);
    builder_.begin_function(function->begin);
    covered_until_ = function->end;
    counters_.covered_bytes += function->end - function->begin;
    if (function->is_outermost || function->moves_stack) {
      ddprof_unwind_rule root{};
      root.cfa = function->keeps_frame_pointer ? DDPROF_CFA_GO_SWITCH : DDPROF_CFA_END;
      builder_.add(function->begin, dictionary_.intern(root));
      return;
    }
    const std::uint64_t known_until =
        go_->for_each_stack_size(*function, [&](std::uint64_t address, std::int32_t stack_bytes) {
          if (++go_stretches_ > std::min(go_->max_stretches(), max_rows_)) return false;
          builder_.add(address, dictionary_.intern(go_rule(stack_bytes)));
          return true;
        });
    if (known_until < function->end) builder_.add(known_until, RuleIndex::gap);  // padding, usually
  }

  void add_entry(const CfiIndex& index, std::size_t entry, std::uint64_t next_begin) {
    auto fde = index.fde(entry);
    // Two entries for one address: the first stands.
    if (!fde || fde->begin < covered_until_) {
      ++counters_.stray_entries;
      return;
    }
    const std::uint64_t limit = std::min(next_begin == fde->begin ? kNever : next_begin, code_end_);
    if (fde->end > limit) {
      ++counters_.stray_entries;
      fde->end = limit;
    }
    if (fde->begin > covered_until_) builder_.add(covered_until_, RuleIndex::gap);
    builder_.begin_function(fde->begin);
    add_rows(index.section(), *fde);
    covered_until_ = fde->end;
    counters_.covered_bytes += fde->end - fde->begin;
  }

  void add_rows(const CfiSection& section, const Fde& fde) {
    program_.start(section, fde);
    while (program_.next()) {
      const RuleIndex rule =
          dictionary_.intern(to_unwind_rule(program_.state(), *fde.cie, section.architecture));
      if (rule == RuleIndex::unsupported) ++counters_.unsupported_rows;
      builder_.add(program_.row_begin(), rule);
    }
    if (program_.failed()) {
      ++counters_.bad_entries;
      builder_.add(program_.row_end(), RuleIndex::gap);
    }
  }

  const GoFunctions* go_;
  const CfiIndex& eh_frame_;
  const CfiIndex& debug_frame_;
  RuleDictionary& dictionary_;
  UnwindTableCounters counters_;
  std::uint64_t code_begin_;
  std::uint64_t code_end_;
  std::uint64_t covered_until_;
  std::size_t max_rows_;
  UnwindTableBuilder builder_;
  CfiProgram program_;
  std::size_t go_stretches_ = 0;
};

}  // namespace

UnwindTable compile_unwind_table(const ElfFile& file, RuleDictionary& dictionary, const ReadLimits& limits) {
  const CodeRanges code(file.segments());
  if (code.empty()) return {};
  dictionary.start_file();
  UnwindTableCounters counters;
  std::vector<std::byte> storage;
  const CfiIndex eh_frame(eh_frame_of(file, limits, counters), code, counters, limits);
  const CfiIndex debug_frame(debug_frame_of(file, storage, limits, counters), code, counters, limits);
  const std::optional<GoFunctions> go = GoFunctions::find(file);
  const std::size_t expected_rows =
      (eh_frame.section().data.size() + debug_frame.section().data.size()) / kBytesPerRow;
  UnwindTable table =
      Compiler(go ? &*go : nullptr, eh_frame, debug_frame, code, dictionary, limits, counters, expected_rows)
          .run();
  const bool is_covered = table.counters().covered_bytes >= code.bytes() / 8 * 7;
  // For code that is followed instruction by instruction.
  if (!is_covered && !file.is_32_bit()) table.set_no_return(NoReturnFunctions::find(file));
  return table;
}

std::optional<WindowCompiler> WindowCompiler::of(const ElfFile& file, std::size_t large_bytes) {
  const auto eh_frame = file.find_eh_frame();
  if (!eh_frame || eh_frame->data.size() < large_bytes) return std::nullopt;
  const CodeRanges code(file.segments());
  const EhFrameTable table(file);
  const auto debug_frame = file.find_section(".debug_frame");
  const bool is_all = !debug_frame || debug_frame->data.empty();
  if (code.empty() || table.empty() || !is_all || GoFunctions::find(file)) return std::nullopt;
  return WindowCompiler(file, code, table);
}

std::optional<std::size_t> WindowCompiler::window_of(std::uint64_t elf_address) const {
  if (elf_address < code_.begin() || elf_address >= code_.end()) return std::nullopt;
  return (elf_address - code_.begin()) / kWindowBytes;
}

std::size_t WindowCompiler::size() const {
  return (code_.end() - code_.begin() + kWindowBytes - 1) / kWindowBytes;
}

UnwindTable WindowCompiler::compile(std::size_t window, RuleDictionary& dictionary,
                                    const ReadLimits& limits) const {
  constexpr std::size_t kRowsPerEntry = 8;
  const std::uint64_t begin = code_.begin() + window * kWindowBytes;
  const std::uint64_t end = std::min(begin + kWindowBytes, code_.end());
  UnwindTableCounters counters;
  const CfiIndex entries(section_, table_, begin, end, code_, counters);
  const CfiIndex none(CfiSection{}, code_, counters, limits);
  return Compiler(nullptr, entries, none, code_, dictionary, limits, counters, entries.size() * kRowsPerEntry)
      .run();
}

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
    builder_.begin_function(begin);
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
