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

bool JitTables::Reading::has_grown() const {
  const auto size = file->dump->size();
  return !size || *size != dump.offset();
}

void JitTables::Reading::read() {
  const Nanoseconds began = monotonic_now();
  const auto read_all = guard.read(*file, FileUse::generated_code, [this] { return read_and_compile(); });
  is_new = !read_all || *read_all;
  if (!read_all) {
    is_broken = true;
    dump.reset();
    table = {};
  }
  took = monotonic_now() - began;
  is_done.store(true, std::memory_order_release);
}

// What was read before the dump broke stays known.
Result<bool> JitTables::Reading::read_and_compile() {
  const auto has_more = read_growth(*file->dump, dump);
  is_broken = !has_more.ok();
  if (!is_broken && !*has_more) return false;
  std::vector<GeneratedCode> pieces;
  dump.for_each_unwinding([&](const JitDump::Unwinding& piece) {
    pieces.push_back({piece.begin, piece.end, piece.moved_by, piece.vaddr, piece.eh_frame});
  });
  rules.emplace();
  table = compile_generated_code(pieces, Architecture::x86_64, *rules, guard.limits);
  return true;
}

void JitTables::add(FileId code, FileId dump) {
  auto& source = sources_[to_int(code)];
  if (source && source->reading->file == files_.file(dump)) return;
  source = std::make_unique<Source>();
  source->reading = std::make_shared<Reading>(files_.file(dump), guard_);
}

const UnwindTable* JitTables::table(FileId code) const {
  const auto known = sources_.find(to_int(code));
  if (known == sources_.end() || known->second->table.empty()) return nullptr;
  return &known->second->table;
}

bool JitTables::refresh(FileId code, FileThreads::User user, Nanoseconds now) {
  const auto known = sources_.find(to_int(code));
  if (known == sources_.end()) return false;
  Source& source = *known->second;
  Reading& reading = *source.reading;
  source.was_used = true;
  const auto is_done = [&] { return reading.is_done.load(std::memory_order_acquire); };
  if (source.is_taken) {
    if (now < source.next_look || reading.is_broken) return false;
    source.next_look = now + kShortestPause;
    if (!reading.has_grown()) return false;
    reading.is_done = source.is_taken = false;
    if (!threads_.post(user, [of = source.reading] { of->read(); }))
      reading.is_done = reading.is_broken = true;
    threads_.wait(user, false, is_done);
  }
  if (!is_done()) return false;
  source.is_taken = true;
  source.next_look = now + std::max(kShortestPause, reading.took * kPausePerWork);
  if (!std::exchange(reading.is_new, false)) return false;
  source.table = std::move(reading.table);
  rules_.start_file();
  if (reading.rules) source.table.translate(*reading.rules, rules_);
  return true;
}

bool JitTables::forget_unused() {
  const std::size_t before = sources_.size();
  absl::erase_if(sources_, [](const auto& entry) { return !entry.second->was_used; });
  for (auto& entry : sources_) entry.second->was_used = false;
  return sources_.size() != before;
}

std::size_t JitTables::table_bytes() const {
  std::size_t bytes = 0;
  for (const auto& entry : sources_) {
    const Source& source = *entry.second;
    bytes += source.table.bytes() + (source.is_taken ? source.reading->dump.memory_bytes() : 0);
  }
  return bytes;
}

}  // namespace ddprof
