#include "session/code_memory.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace ddprof {

namespace {

using namespace std::chrono_literals;

// A window holds a block of addresses, what may be jumped back to, and what may come after it.
constexpr std::uint64_t kBlockBytes = 64U << 10U;
constexpr std::uint64_t kLeadBytes = 32U << 10U;

constexpr Nanoseconds kFirstTrust = 1s;
constexpr Nanoseconds kLongestTrust = 32s;
constexpr int kTrustPerDoubt = 64;

// Other code at an address differs within a few instructions.
constexpr std::uint64_t kCheckedBefore = 128;
constexpr std::uint64_t kCheckedBytes = 512;

std::span<const std::byte> around(std::uint64_t begin, std::span<const std::byte> bytes,
                                  std::uint64_t address) {
  const std::uint64_t offset = address - begin;
  if (offset >= bytes.size()) return {};
  const std::uint64_t first = offset - std::min(offset, kCheckedBefore);
  return bytes.subspan(first, std::min<std::uint64_t>(kCheckedBytes, bytes.size() - first));
}

}  // namespace

void CodeMemory::begin_stack(Nanoseconds taken_at) {
  replaced_.clear();
  checked_.clear();
  taken_at_ = taken_at;
  ++stacks_;
  if (windows_.size() <= kMostWindows) return;
  // A few at a time: those that were used longest ago.
  std::vector<std::pair<std::uint64_t, Key>> ages;
  ages.reserve(windows_.size());
  for (const auto& [key, window] : windows_) ages.emplace_back(window->used_at, key);
  const auto middle = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() - kMostWindows * 3 / 4);
  std::nth_element(ages.begin(), middle, ages.end());
  for (auto age = ages.begin(); age != middle; ++age) windows_.erase(age->second);
}

void CodeMemory::forget_unused() {
  absl::erase_if(windows_, [](const auto& entry) { return !entry.second->was_used; });
  for (auto& entry : windows_) entry.second->was_used = false;
  shares_.clear();
}

void CodeMemory::forget_all() {
  windows_.clear();
  shares_.clear();
  replaced_.clear();
}

CodeMemory::Share& CodeMemory::share(Pid pid, Nanoseconds now) {
  Share& share = shares_[to_int(pid)];
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != share.second) share = {.second = second};
  return share;
}

bool CodeMemory::may_read(Pid pid, Nanoseconds now) {
  if (++share(pid, now).reads <= kMostReadsPerSecond) return true;
  ++refusals_;
  return false;
}

void CodeMemory::read(Pid pid, Window& window, bool is_same_place, Nanoseconds now) {
  window.read_at = now;
  std::vector<std::byte> bytes(window.end - window.begin);
  bytes.resize(memory_.read(pid, Address{window.begin}, bytes));
  if (is_same_place && (bytes.empty() || bytes == window.bytes)) {
    window.trusted_for = std::min(window.trusted_for * 2, kLongestTrust);
    window.previous = {};
    return;
  }
  replaced_.push_back(std::move(window.previous));
  window.previous = is_same_place ? window.bytes : std::vector<std::byte>{};
  replaced_.push_back(std::move(window.bytes));
  window.bytes = std::move(bytes);
  window.version = ++last_version_;
  window.trusted_for = kFirstTrust;
  window.changed_at = now;
}

// A stack comes to the same address several times.
bool CodeMemory::is_unchanged(Pid pid, const Window& window, std::uint64_t address, Nanoseconds now) {
  if (std::find(checked_.begin(), checked_.end(), address) != checked_.end()) return true;
  checked_.push_back(address);
  const auto known = around(window.begin, window.bytes, address);
  if (known.empty() || ++share(pid, now).checks > kMostChecksPerSecond) return true;
  std::array<std::byte, kCheckedBytes> bytes;
  const Address from{window.begin + static_cast<std::uint64_t>(known.data() - window.bytes.data())};
  const std::size_t size = memory_.read_stack(pid, from, std::span(bytes).first(known.size()));
  // A process that has ended has left nothing to compare.
  return size == 0 || std::equal(known.begin(), known.end(), bytes.begin(),
                                 bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

CodeBytes CodeMemory::find(Pid pid, const Module& module, Address address, bool is_doubted, Nanoseconds now) {
  const std::uint64_t block = address.value / kBlockBytes;
  const std::uint64_t block_begin = block * kBlockBytes;
  const std::uint64_t begin = std::max(module.start.value, block_begin - std::min(block_begin, kLeadBytes));
  const std::uint64_t end = std::min(module.end.value, begin + kWindowBytes);
  std::unique_ptr<Window>& window = windows_[{to_int(pid), block}];
  if (!window) window = std::make_unique<Window>();
  window->used_at = stacks_;
  window->was_used = true;
  const bool is_other = window->begin != begin || window->end != end;
  const Nanoseconds trusted_for = is_doubted ? window->trusted_for / kTrustPerDoubt : window->trusted_for;
  if (is_other || now - window->read_at >= trusted_for || !is_unchanged(pid, *window, address.value, now)) {
    if (!may_read(pid, now)) {
      window->end = 0;  // nothing is known of it any more
      return {};
    }
    window->begin = begin;
    window->end = end;
    read(pid, *window, !is_other, now);
  }
  if (taken_at_ < window->changed_at && !window->previous.empty()) {
    const auto before = around(begin, window->previous, address.value);
    const auto after = around(begin, window->bytes, address.value);
    if (!std::equal(before.begin(), before.end(), after.begin(), after.end())) return {};
  }
  return {window->begin, window->bytes, window->version};
}

}  // namespace ddprof
