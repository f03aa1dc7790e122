#include "symbol/code_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "elf/byte_cursor.hpp"
#include "symbol/demangle.hpp"

namespace ddprof {

namespace {

// The image: this header, the key, then entries sorted by address, calls and texts.
struct NamesHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t entries = 0;
  std::uint32_t calls = 0;
  std::uint64_t text_bytes = 0;
};

constexpr std::array<char, 8> kNamesMagic = {'d', 'd', 'p', 'n', 'a', 'm', 'e', 's'};
// To be raised with every change of the layout, of how readable names are made, or of what debug information
// is read for: what older versions wrote is then read anew.
constexpr std::uint32_t kNamesVersion = 3;

template <typename T>
void append_bytes(std::vector<std::byte>& bytes, const T* values, std::size_t count) {
  const auto* first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

}  // namespace

// Collects entries until the budget is spent.
class CodeNames::Writer {
 public:
  void add(std::uint64_t address, const std::vector<NamedCall>& calls) {
    if (bytes() > kMaxImageBytes) return;
    entries_.push_back(
        {address, static_cast<std::uint32_t>(calls_.size()), static_cast<std::uint32_t>(calls.size())});
    for (const NamedCall& call : calls) {
      calls_.push_back({text(call.linker_name), text(call.name), text(call.file), call.line, call.column,
                        call.start_line});
    }
  }

  std::vector<std::byte> finish(std::string_view key) && {
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& left, const Entry& right) { return left.address < right.address; });
    const NamesHeader header{kNamesMagic,
                             kNamesVersion,
                             static_cast<std::uint32_t>(key.size()),
                             static_cast<std::uint32_t>(entries_.size()),
                             static_cast<std::uint32_t>(calls_.size()),
                             texts_.size()};
    std::vector<std::byte> image;
    image.reserve(sizeof header + key.size() + bytes());
    append_bytes(image, &header, 1);
    append_bytes(image, key.data(), key.size());
    append_bytes(image, entries_.data(), entries_.size());
    append_bytes(image, calls_.data(), calls_.size());
    append_bytes(image, texts_.data(), texts_.size());
    return image;
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    return entries_.size() * sizeof(Entry) + calls_.size() * sizeof(Call) + texts_.size();
  }
  std::uint32_t text(std::string_view text) {
    auto [known, is_new] = index_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.append(text).push_back('\0');
    return known->second;
  }

  std::vector<Entry> entries_;
  std::vector<Call> calls_;
  std::string texts_;
  absl::flat_hash_map<std::string_view, std::uint32_t, TextHash, std::equal_to<>>
      index_;  // the texts live in the CodeNames
};

Result<CodeNames> CodeNames::from_image(MappedRegion image, std::string_view key) {
  const auto bytes = image.bytes();
  const auto header = load<NamesHeader>(bytes, 0);
  if (!header || header->magic != kNamesMagic || header->version != kNamesVersion)
    return make_error(ErrorCode::corrupt, "read cached names: not of this version");
  std::uint64_t at = sizeof(NamesHeader);
  const auto take = [&](std::uint64_t size) {
    const auto part = slice_of(bytes, at, size);
    at += size;
    return part;
  };
  const auto cached_key = take(header->key_bytes);
  CodeNames names;
  names.cached_entries_ = take(std::uint64_t{header->entries} * sizeof(Entry));
  names.cached_calls_ = take(std::uint64_t{header->calls} * sizeof(Call));
  names.cached_texts_ = take(header->text_bytes);
  if (at != bytes.size())
    return make_error(ErrorCode::corrupt, "read cached names: {} bytes, not {}", bytes.size(), at);
  if (cached_key.size() != key.size() || std::memcmp(cached_key.data(), key.data(), key.size()) != 0)
    return make_error(ErrorCode::corrupt, "read cached names: of another file");
  names.cached_count_ = header->entries;
  names.cached_ = std::move(image);
  return names;
}

std::vector<std::byte> CodeNames::image(std::string_view key) const {
  Writer writer;
  std::vector<Entry> added;
  for (const auto& [address, entry] : added_) added.push_back(entry);
  std::sort(added.begin(), added.end(),
            [](const Entry& left, const Entry& right) { return left.address < right.address; });
  for (const Entry& entry : added) writer.add(entry.address, added_calls(entry));
  for (std::size_t index = 0; index < cached_count_; ++index) {
    const Entry entry = cached_entry(index);
    if (!added_.contains(entry.address)) writer.add(entry.address, cached_calls(entry));
  }
  return std::move(writer).finish(key);
}

std::uint32_t CodeNames::keep_text(std::string_view text) {
  if (text.empty()) return 0;
  auto [known, is_new] = text_index_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.append(text).push_back('\0');
  return known->second;
}

std::uint32_t CodeNames::readable(std::uint32_t linker_name, const SourceCall& call) {
  if (call.linker_name.empty()) return keep_text(bounded_name(call.name));
  if (auto known = readable_index_.find(linker_name); known != readable_index_.end()) return known->second;
  return readable_index_[linker_name] = keep_text(demangle(call.linker_name));
}

void CodeNames::add(std::uint64_t address, std::span<const SourceCall> calls) {
  const auto first = static_cast<std::uint32_t>(calls_.size());
  for (const SourceCall& call : calls) {
    const std::uint32_t linker_name = keep_text(call.linker_name.empty() ? call.name : call.linker_name);
    calls_.push_back({linker_name, readable(linker_name, call), keep_text(call.file), call.line, call.column,
                      call.start_line});
  }
  added_[address] = {address, first, static_cast<std::uint32_t>(calls.size())};
}

CodeNames::Entry CodeNames::cached_entry(std::size_t index) const {
  return load<Entry>(cached_entries_, index * sizeof(Entry)).value_or(Entry{});
}

std::optional<CodeNames::Entry> CodeNames::find_cached(std::uint64_t address) const {
  std::size_t low = 0;
  std::size_t high = cached_count_;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const Entry entry = cached_entry(middle);
    if (entry.address == address) return entry;
    (entry.address < address ? low : high) = entry.address < address ? middle + 1 : middle;
  }
  return std::nullopt;
}

std::vector<NamedCall> CodeNames::cached_calls(const Entry& entry) const {
  std::vector<NamedCall> calls;
  const std::size_t all = cached_calls_.size() / sizeof(Call);
  const std::size_t count = entry.first < all ? std::min<std::size_t>(entry.count, all - entry.first) : 0;
  calls.reserve(count);
  for (std::size_t index = entry.first; index < entry.first + count; ++index) {
    const Call call = load<Call>(cached_calls_, index * sizeof(Call)).value_or(Call{});
    calls.push_back({load_string(cached_texts_, call.linker_name), load_string(cached_texts_, call.name),
                     load_string(cached_texts_, call.file), call.line, call.column, call.start_line});
  }
  return calls;
}

std::vector<NamedCall> CodeNames::added_calls(const Entry& entry) const {
  std::vector<NamedCall> calls;
  calls.reserve(entry.count);
  const auto text = [this](std::uint32_t at) { return std::string_view(texts_.c_str() + at); };
  for (const Call& call : std::span(calls_).subspan(entry.first, entry.count)) {
    calls.push_back(
        {text(call.linker_name), text(call.name), text(call.file), call.line, call.column, call.start_line});
  }
  return calls;
}

std::optional<std::vector<NamedCall>> CodeNames::find(std::uint64_t address) const {
  if (auto added = added_.find(address); added != added_.end()) return added_calls(added->second);
  if (const auto cached = find_cached(address)) return cached_calls(*cached);
  return std::nullopt;
}

std::size_t CodeNames::memory_bytes() const {
  return added_.capacity() * sizeof(Entry) + calls_.capacity() * sizeof(Call) + 2 * texts_.capacity();
}

}  // namespace ddprof
