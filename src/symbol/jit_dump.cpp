#include "symbol/jit_dump.hpp"

#include <algorithm>
#include <utility>

#include "elf/byte_cursor.hpp"

namespace ddprof {

std::size_t JitCode::memory_bytes() const {
  return sizeof *this + name.size() + files.size() + lines.size() * sizeof(Line) + unwinding.size();
}

bool JitCodeMap::load(JitCode code, std::size_t max_codes, std::size_t max_bytes) {
  if (code.size == 0 || code.size > ~code.start) return false;
  // First, so that a compiler that reuses its memory never reaches a limit.
  clear(code.start, code.start + code.size);
  if (size() >= max_codes || places_.size() >= kMaxPlaces) return false;
  if (memory_bytes() + kPlaceBytes + code.memory_bytes() > max_bytes) return false;
  memory_bytes_ += code.memory_bytes();
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(codes_.size()));
    codes_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  const std::uint64_t start = code.start;
  by_index_[code.index] = slot;
  codes_[slot] = Entry{.code = std::move(code), .last_start = start};
  put(start, slot, 0);
  return true;
}

bool JitCodeMap::move(std::uint64_t old_start, std::uint64_t new_start, std::uint64_t size,
                      std::uint64_t index) {
  const std::optional<std::uint32_t> slot = code_to_move(old_start, index);
  if (!slot || size == 0 || places_.size() >= kMaxPlaces || codes_[*slot].code.size > ~new_start)
    return false;
  Entry& entry = codes_[*slot];
  ++entry.uses;  // the new place may lie over all that is left of the old one
  clear(new_start, new_start + entry.code.size);
  put(new_start, *slot, new_start - entry.code.start);
  entry.last_start = new_start;
  release(*slot);
  return true;
}

std::optional<JitCodeMap::Found> JitCodeMap::find(std::uint64_t address) const {
  const auto after = places_.upper_bound(address);
  if (after == places_.begin()) return std::nullopt;
  const Place& place = std::prev(after)->second;
  if (address >= place.end) return std::nullopt;
  return Found{&code(place), place.moved_by};
}

void JitCodeMap::put(std::uint64_t start, std::uint32_t code, std::uint64_t moved_by) {
  places_[start] = {start + codes_[code].code.size, moved_by, code};
  ++codes_[code].uses;
}

// Makes [start, end) free: what reaches into it is cut, what lies inside goes.
void JitCodeMap::clear(std::uint64_t start, std::uint64_t end) {
  auto at = places_.lower_bound(start);
  if (at != places_.begin()) {
    Place& before = std::prev(at)->second;
    const Place whole = before;
    if (whole.end > start) before.end = start;
    if (whole.end > end) {
      places_.emplace_hint(at, end, whole);
      ++codes_[whole.code].uses;
      return;
    }
  }
  while (at != places_.end() && at->first < end) {
    const Place inside = at->second;
    at = places_.erase(at);
    if (inside.end > end) {
      places_.emplace_hint(at, end, inside);
      return;
    }
    release(inside.code);
  }
}

void JitCodeMap::release(std::uint32_t code) {
  Entry& entry = codes_[code];
  if (--entry.uses > 0) return;
  memory_bytes_ -= entry.code.memory_bytes();
  const auto known = by_index_.find(entry.code.index);
  if (known != by_index_.end() && known->second == code) by_index_.erase(known);
  entry = Entry{};
  free_.push_back(code);
}

// The compiler's number says which code is meant even where its old place has been overwritten meanwhile; but
// not every compiler gives numbers.
std::optional<std::uint32_t> JitCodeMap::code_to_move(std::uint64_t old_start, std::uint64_t index) const {
  const auto known = by_index_.find(index);
  if (known != by_index_.end() && codes_[known->second].last_start == old_start) return known->second;
  const auto place = places_.find(old_start);
  if (place == places_.end()) return std::nullopt;
  const bool is_start = codes_[place->second.code].code.start + place->second.moved_by == old_start;
  return is_start ? std::optional(place->second.code) : std::nullopt;
}

namespace {

constexpr std::uint32_t kJitMagic = 0x4A695444;
constexpr std::uint32_t kForeignJitMagic = 0x4454694A;
constexpr std::uint64_t kJitHeaderBytes = 40;
constexpr std::uint64_t kPrefixBytes = 16;  // id, size of the record, time

// V8 adds the size of an ELF header to the addresses of lines, because perf once forgot to when it turned
// code into ELF files. It is told by what it writes into a reserved field of the header.
constexpr std::uint32_t kReservedOfV8 = 0xdeadbeef;
constexpr std::uint64_t kLineShiftOfV8 = 0x40;

enum JitRecord : std::uint32_t { kLoad = 0, kMove = 1, kLines = 2, kClose = 3, kUnwinding = 4 };

// The zero-terminated text at the front, cut where it gets too long; takes it and its zero off `bytes`. None
// when it does not end.
std::optional<std::string_view> take_text(std::span<const std::byte>& bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = all.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  bytes = bytes.subspan(end + 1);
  return all.substr(0, std::min(end, JitDump::kMaxTextBytes));
}

// The specification puts the .eh_frame_hdr before the .eh_frame; V8 and perf put it behind. An .eh_frame
// begins with a CIE: its size, which fits, and a zero.
bool begins_with_frames(std::span<const std::byte> unwinding) {
  const auto size = load<std::uint32_t>(unwinding, 0);
  return size && *size >= 4 && *size <= unwinding.size() - 4 && load<std::uint32_t>(unwinding, 4) == 0U;
}

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Result<bool> JitDump::read_header(std::span<const std::byte> bytes) {
  const auto magic = load<std::uint32_t>(bytes, 0);
  const auto version = load<std::uint32_t>(bytes, 4);
  const auto size = load<std::uint32_t>(bytes, 8);
  if (!magic || !version || !size || bytes.size() < kJitHeaderBytes) return false;
  if (*magic == kForeignJitMagic)
    return make_error(ErrorCode::unsupported, "read jitdump: it was written in another byte order");
  if (*magic != kJitMagic) return make_error(ErrorCode::corrupt, "read jitdump: it does not begin like one");
  if (*version != 1)
    return make_error(ErrorCode::unsupported, "read jitdump: version {} is unknown", *version);
  if (*size < kJitHeaderBytes || *size > kMaxRecordBytes)
    return make_error(ErrorCode::corrupt, "read jitdump: its header claims to have {} bytes", *size);
  if (load<std::uint32_t>(bytes, 16) == kReservedOfV8) line_shift_ = kLineShiftOfV8;
  offset_ = *size;
  return true;
}

Result<void> JitDump::read(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  const std::uint64_t bytes_at = offset_;
  bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), file_bytes - std::min(file_bytes, bytes_at)));
  if (offset_ == 0 && !TRY(read_header(bytes))) return {};
  while (offset_ <= file_bytes && offset_ - bytes_at <= bytes.size()) {
    const auto rest = bytes.subspan(offset_ - bytes_at);
    const auto id = load<std::uint32_t>(rest, 0);
    const auto size = load<std::uint32_t>(rest, 4);
    // Zeros are room that a compiler has made and not yet filled.
    if (!id || !size || rest.size() < kPrefixBytes || *size == 0) break;
    if (*size < kPrefixBytes)
      return make_error(ErrorCode::corrupt, "read jitdump: the record at byte {} claims to have {} bytes",
                        offset_, *size);
    if (*size > file_bytes - offset_) break;
    const bool is_whole = *size <= rest.size();
    if (!is_whole && offset_ != bytes_at) break;  // more of it fits when it is at the front, next time
    const auto record = rest.first(std::min<std::size_t>(*size, rest.size()));
    if (!read_record(*id, record.subspan(kPrefixBytes), is_whole)) ++skipped_records_;
    offset_ += *size;
  }
  return {};
}

bool JitDump::read_record(std::uint32_t id, std::span<const std::byte> payload, bool is_whole) {
  switch (id) {
    case kLoad:
      return read_load(payload);
    case kMove:
      return read_move(payload);
    case kLines:
      return is_whole && read_lines(payload);
    case kUnwinding:
      return is_whole && read_unwinding(payload);
    case kClose:
      is_closed_ = true;
      return true;
    default:
      return true;  // of a later version: it may be anything
  }
}

// Process, thread, start of the mapping, start of the code, its size, its number, its name; the code itself
// is not read.
bool JitDump::read_load(std::span<const std::byte> payload) {
  Pending pending = std::exchange(pending_, {});
  const auto fields = slice_of(payload, 0, 40);
  if (fields.empty()) return false;
  JitCode code;
  code.start = *load<std::uint64_t>(fields, 16);
  code.size = *load<std::uint64_t>(fields, 24);
  code.index = *load<std::uint64_t>(fields, 32);
  auto rest = payload.subspan(40);
  const auto name = take_text(rest);
  if (!name) return false;
  code.name = *name;
  if (pending.code_start == code.start) {
    code.files = std::move(pending.files);
    code.lines = std::move(pending.lines);
  }
  code.unwinding = std::move(pending.unwinding);
  code.unwinding_header_bytes = pending.unwinding_header_bytes;
  return codes_.load(std::move(code), kMaxCodes, limits_.bytes());
}

// Process, thread, start of the mapping, old and new start of the code, its size, its number.
bool JitDump::read_move(std::span<const std::byte> payload) {
  const auto fields = slice_of(payload, 0, 48);
  if (fields.empty()) return false;
  return codes_.move(*load<std::uint64_t>(fields, 16), *load<std::uint64_t>(fields, 24),
                     *load<std::uint64_t>(fields, 32), *load<std::uint64_t>(fields, 40));
}

// Start of the code, count; then address, line, discriminator, name of the file for each.
bool JitDump::read_lines(std::span<const std::byte> payload) {
  constexpr std::string_view kSameFile = "\xff";
  const auto start = load<std::uint64_t>(payload, 0);
  const auto count = load<std::uint64_t>(payload, 8);
  if (!start || !count) return false;
  pending_.code_start = *start;
  pending_.files.clear();
  pending_.lines.clear();
  auto rest = payload.subspan(16);
  std::uint32_t file = 0;
  for (std::uint64_t entry = 0; entry < *count; ++entry) {
    const auto address = load<std::uint64_t>(rest, 0);
    const auto line = load<std::uint32_t>(rest, 8);
    if (!address || !line || rest.size() < 16) return false;
    rest = rest.subspan(16);
    const auto name = take_text(rest);
    if (!name) return false;
    if (*name != kSameFile || pending_.files.empty()) {
      file = static_cast<std::uint32_t>(pending_.files.size());
      pending_.files.append(*name == kSameFile ? "" : *name) += '\0';
    }
    const std::uint64_t offset = *address - *start - line_shift_;
    if (offset <= UINT32_MAX) pending_.lines.push_back({static_cast<std::uint32_t>(offset), *line, file});
  }
  std::stable_sort(pending_.lines.begin(), pending_.lines.end(),
                   [](const JitCode::Line& a, const JitCode::Line& b) { return a.offset < b.offset; });
  return true;
}

// Size of all, of the header in it, of what is mapped; then header and frames.
bool JitDump::read_unwinding(std::span<const std::byte> payload) {
  const auto size = load<std::uint64_t>(payload, 0);
  const auto header_bytes = load<std::uint64_t>(payload, 8);
  if (!size || !header_bytes || *header_bytes > *size) return false;
  const auto data = slice_of(payload, 24, *size);
  pending_.unwinding.assign(data.begin(), data.end());
  pending_.unwinding_header_bytes = *header_bytes;
  return !data.empty();
}

bool JitDump::find(std::uint64_t address, const std::function<void(const SourceCall&)>& take) const {
  const auto found = codes_.find(address);
  if (!found) return false;
  const JitCode& code = *found->code;
  SourceCall call{.linker_name = code.name, .name = code.name};
  const std::uint64_t offset = address - found->moved_by - code.start;
  const auto after =
      std::upper_bound(code.lines.begin(), code.lines.end(), offset,
                       [](std::uint64_t value, const JitCode::Line& line) { return value < line.offset; });
  if (after != code.lines.begin()) {
    call.line = std::prev(after)->line;
    call.file = code.files.c_str() + std::prev(after)->file;
  }
  take(call);
  return true;
}

void JitDump::for_each_unwinding(const std::function<void(const Unwinding&)>& take) const {
  for (const auto& [begin, place] : codes_.places()) {
    const JitCode& code = codes_.code(place);
    if (code.unwinding.empty() || code.unwinding_header_bytes > code.unwinding.size()) continue;
    const std::span<const std::byte> all = code.unwinding;
    const bool is_first = begins_with_frames(all);
    Unwinding unwinding{.begin = begin, .end = place.end, .moved_by = place.moved_by};
    // It follows the code, as it would in an ELF file: its addresses are often relative.
    unwinding.vaddr = code.start + rounded_up(code.size, 8) + (is_first ? 0 : code.unwinding_header_bytes);
    unwinding.eh_frame =
        all.subspan(is_first ? 0 : code.unwinding_header_bytes, all.size() - code.unwinding_header_bytes);
    take(unwinding);
  }
}

}  // namespace ddprof
