#include "session/jit_tables.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxWindowsAtOnce = 64;
constexpr Nanoseconds kShortestPause = std::chrono::milliseconds(10);
constexpr int kPausePerWork = 50;  // 2 % of a core at most

}  // namespace

Result<bool> read_growth(const JitFile& file, JitDump& dump) {
  const std::uint64_t file_bytes = TRY(file.size());
  if (file_bytes < dump.offset()) dump.reset();
  std::vector<std::byte> window;
  bool has_grown = false;
  for (std::size_t count = 0; count < kMaxWindowsAtOnce && dump.offset() < file_bytes; ++count) {
    const std::uint64_t before = dump.offset();
    window.resize(std::min<std::uint64_t>(JitDump::kMaxRecordBytes, file_bytes - before));
    window.resize(TRY(file.read(before, window)));
    TRY(dump.read(window, file_bytes));
    if (dump.offset() == before) break;  // its end is still being written
    has_grown = true;
  }
  return has_grown;
}

void JitTables::add(FileId code, FileId dump) {
  auto& source = sources_[to_int(code)];
  if (source && source->file == files_.file(dump)) return;
  source = std::make_unique<Source>();
  source->file = files_.file(dump);
  source->dump = JitDump(guard_.limits);
}

const UnwindTable* JitTables::table(FileId code) const {
  const auto known = sources_.find(to_int(code));
  if (known == sources_.end() || known->second->table.empty()) return nullptr;
  return &known->second->table;
}

bool JitTables::refresh(FileId code, Nanoseconds now) {
  const auto known = sources_.find(to_int(code));
  if (known == sources_.end()) return false;
  Source& source = *known->second;
  source.was_used = true;
  if (now < source.next_look || source.is_broken) return false;
  const auto read_all = guard_.read(ReadingThread::sampling, *source.file, FileUse::generated_code,
                                    [&] { return read(source); });
  const bool is_new = !read_all || *read_all;
  if (!read_all) {
    source.is_broken = true;
    source.dump.reset();
    source.table = {};
  }
  const Nanoseconds done = monotonic_now();
  source.next_look = done + std::max(kShortestPause, (done - now) * kPausePerWork);
  return is_new;
}

// What was read before the dump broke stays known.
Result<bool> JitTables::read(Source& source) {
  const auto has_grown = read_growth(*source.file->dump, source.dump);
  source.is_broken = !has_grown.ok();
  const bool is_new = source.is_broken || *has_grown;
  if (is_new) compile(source);
  return is_new;
}

void JitTables::compile(Source& source) {
  std::vector<GeneratedCode> pieces;
  source.dump.for_each_unwinding([&](const JitDump::Unwinding& piece) {
    pieces.push_back({piece.begin, piece.end, piece.moved_by, piece.vaddr, piece.eh_frame});
  });
  source.table = compile_generated_code(pieces, Architecture::x86_64, rules_, guard_.limits);
}

bool JitTables::forget_unused() {
  const std::size_t before = sources_.size();
  absl::erase_if(sources_, [](const auto& entry) { return !entry.second->was_used; });
  for (auto& entry : sources_) entry.second->was_used = false;
  return sources_.size() != before;
}

std::size_t JitTables::table_bytes() const {
  std::size_t bytes = 0;
  for (const auto& entry : sources_) bytes += entry.second->table.bytes() + entry.second->dump.memory_bytes();
  return bytes;
}

}  // namespace ddprof
