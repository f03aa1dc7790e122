#include "symbol/kernel_symbols.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/turns.hpp"

namespace ddprof {

namespace {

// Behind the last symbol of the kernel, or of a module, lies nothing that we know of; this much still counts
// as the symbol's.
constexpr std::uint64_t kMaxLastBytes = 64 << 10;
constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxSymbols = 4'000'000;
constexpr std::size_t kMaxNameBytes = 512;  // KSYM_NAME_LEN

struct Line {
  std::uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;
};

// "ffffffffc0a01000 t nft_do_chain\t[nf_tables]"
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), line.address, 16);
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (error != std::errc{} || text.size() < 4 || text[0] != ' ' || text[2] != ' ') return std::nullopt;
  line.type = text[1];
  text.remove_prefix(3);
  const std::size_t tab = text.find('\t');
  line.name = text.substr(0, std::min({tab, text.size(), kMaxNameBytes}));
  if (tab != std::string_view::npos) line.module = text.substr(tab + 1, kMaxNameBytes);
  if (line.name.empty() || line.name[0] == '\0') return std::nullopt;
  return line;
}

bool is_code(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

}  // namespace

KernelSymbolsParser::KernelSymbolsParser() {
  constexpr std::size_t kUsualSymbols = 200'000;
  constexpr std::size_t kUsualNameBytes = 24;
  entries_.reserve(kUsualSymbols);
  names_.reserve(kUsualSymbols * kUsualNameBytes);
  names_.push_back('\0');
}

void KernelSymbolsParser::add(std::string_view piece) {
  constexpr std::size_t kMaxLineBytes = 16384;  // no symbol has a line as long as that
  for (std::size_t end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    rest_point_among_many();
    add_line(line_.empty() ? piece.substr(0, end) : line_.append(piece.substr(0, end)));
    line_.clear();
    piece.remove_prefix(end + 1);
  }
  line_ = line_.size() + piece.size() < kMaxLineBytes ? line_.append(piece) : "";
}

void KernelSymbolsParser::add_line(std::string_view text) {
  const std::optional<Line> line = parse_line(text);
  // Absolute symbols of per-CPU data are small numbers, hidden addresses are zero: neither is code.
  if (!line || line->address >> 63 == 0 || entries_.size() >= kMaxSymbols) return;
  // The symbols of a module follow each other.
  if (line->module != std::string_view(names_.data() + last_module_))
    last_module_ = line->module.empty() ? 0 : intern(line->module);
  entries_.push_back({line->address, is_code(line->type) ? intern(line->name) : 0, last_module_});
}

KernelSymbols KernelSymbolsParser::finish() && {
  add_line(line_);
  sort();
  drop_aliases();
  KernelSymbols symbols;
  symbols.own_entries_ = std::move(entries_);
  symbols.own_names_ = std::move(names_);
  symbols.entries_ = symbols.own_entries_;
  symbols.names_ = symbols.own_names_;
  return symbols;
}

std::uint32_t KernelSymbolsParser::intern(std::string_view name) {
  const auto offset = static_cast<std::uint32_t>(names_.size());
  names_.insert(names_.end(), name.begin(), name.end());
  names_.push_back('\0');
  return offset;
}

// The kernel's own symbols come in order, and they are most of them.
void KernelSymbolsParser::sort() {
  const auto is_before = [](const Entry& left, const Entry& right) { return left.start < right.start; };
  const auto unsorted = std::is_sorted_until(entries_.begin(), entries_.end(), is_before);
  std::sort(unsorted, entries_.end(), is_before);
  std::inplace_merge(entries_.begin(), unsorted, entries_.end(), is_before);
}

// Of several names of one address, code comes before data, then the alphabet decides.
void KernelSymbolsParser::drop_aliases() {
  const auto is_better = [this](const Entry& left, const Entry& right) {
    if (left.name == 0 || right.name == 0) return left.name != 0 && right.name == 0;
    return std::strcmp(names_.data() + left.name, names_.data() + right.name) < 0;
  };
  std::size_t count = 0;
  for (const Entry& entry : entries_) {
    if (count == 0 || entries_[count - 1].start != entry.start) {
      entries_[count++] = entry;
    } else if (is_better(entry, entries_[count - 1])) {
      entries_[count - 1] = entry;
    }
  }
  entries_.resize(count);
}

KernelSymbols KernelSymbols::parse(std::string_view kallsyms) {
  KernelSymbolsParser parser;
  parser.add(kallsyms);
  return std::move(parser).finish();
}

// The image: this, the entries, the names.
struct KernelSymbols::ImageHeader {
  static constexpr std::array<char, 8> kMagic = {'d', 'd', 'k', 's', 'y', 'm', 's', '1'};

  std::array<char, 8> magic = kMagic;
  std::array<char, 48> key{};
  std::uint64_t entries = 0;
  std::uint64_t name_bytes = 0;

  explicit ImageHeader(std::string_view text) {
    std::copy_n(text.begin(), std::min(text.size(), key.size()), key.begin());
  }
};

std::vector<std::byte> KernelSymbols::image(std::string_view key) const {
  std::vector<Entry> entries;
  entries.reserve(entries_.size());
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(entries),
               [](const Entry& entry) { return entry.module == 0; });
  ImageHeader header(key);
  header.entries = entries.size();
  header.name_bytes = names_.size();
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof header + entries.size() * sizeof(Entry) + names_.size());
  const auto append = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(&header, 1)));
  append(std::as_bytes(std::span(entries)));
  append(std::as_bytes(names_));
  return bytes;
}

Result<KernelSymbols> KernelSymbols::from_image(MappedRegion image, std::string_view key) {
  ImageHeader header(key);
  const ImageHeader expected(key);
  const std::span<const std::byte> bytes = image.bytes();
  if (bytes.size() < sizeof header)
    return make_error(ErrorCode::corrupt, "too short for an image of kernel symbols");
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t left = bytes.size() - sizeof header;
  if (header.magic != ImageHeader::kMagic || header.key != expected.key ||
      header.entries > left / sizeof(Entry) || header.name_bytes != left - header.entries * sizeof(Entry))
    return make_error(ErrorCode::corrupt, "not an image of this kernel's symbols");
  KernelSymbols symbols;
  const std::byte* entries = bytes.data() + sizeof header;
  symbols.entries_ = {reinterpret_cast<const Entry*>(entries), header.entries};
  symbols.names_ = {reinterpret_cast<const char*>(entries + header.entries * sizeof(Entry)),
                    header.name_bytes};
  symbols.image_ = std::move(image);
  return symbols;
}

// Offsets of an image are not believed.
std::string_view KernelSymbols::name_at(std::uint32_t offset) const {
  if (offset >= names_.size()) return {};
  const std::span<const char> rest = names_.subspan(offset);
  return {rest.data(), ::strnlen(rest.data(), rest.size())};
}

std::optional<KernelSymbol> KernelSymbols::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t value, const Entry& entry) { return value < entry.start; });
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  const std::uint64_t limit =
      after != entries_.end() && after->module == entry.module ? kMaxBytes : kMaxLastBytes;
  if (entry.name == 0 || address - entry.start >= limit) return std::nullopt;
  return KernelSymbol{name_at(entry.name), name_at(entry.module), entry.start};
}

}  // namespace ddprof
