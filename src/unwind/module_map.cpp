#include "unwind/module_map.hpp"

#include <algorithm>
#include <atomic>

namespace ddprof {

namespace {

std::uint32_t next_generation() {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t generation = ++last;
  while (generation == 0) generation = ++last;  // 0 marks empty cache slots
  return generation;
}

// The part of a module inside of [start, end).
Module clipped(Module module, Address start, Address end) {
  const std::uint64_t skipped = start > module.start ? start - module.start : 0;
  module.code = module.code.subspan(std::min<std::uint64_t>(skipped, module.code.size()));
  module.start = std::max(module.start, start);
  module.end = std::min(module.end, end);
  module.code = module.code.first(std::min<std::uint64_t>(module.code.size(), module.end - module.start));
  return module;
}

}  // namespace

std::span<const std::byte> Module::code_at(std::uint64_t runtime_address) const {
  const std::uint64_t offset = runtime_address - start.value;
  return offset < code.size() ? code.subspan(offset) : std::span<const std::byte>{};
}

std::span<const std::byte> Module::code_before(std::uint64_t runtime_address, std::size_t count) const {
  const std::uint64_t offset = runtime_address - start.value;
  if (offset > code.size()) return {};
  const std::uint64_t first = offset > count ? offset - count : 0;
  return code.subspan(first, offset - first);
}

ModuleMap::ModuleMap() : generation_(next_generation()) {}

void ModuleMap::add(const Module& module) {
  if (module.start >= module.end) return;
  cut(module.start, module.end);
  const auto position =
      std::lower_bound(modules_.begin(), modules_.end(), module.start,
                       [](const Module& other, Address start) { return other.start < start; });
  modules_.insert(position, clipped(module, module.start, module.end));
  generation_ = next_generation();
}

void ModuleMap::remove(Address start, Address end) {
  if (start >= end) return;
  cut(start, end);
  generation_ = next_generation();
}

void ModuleMap::clear() {
  modules_.clear();
  generation_ = next_generation();
}

std::uint32_t ModuleMap::search(Address address) const {
  const auto after =
      std::upper_bound(modules_.begin(), modules_.end(), address,
                       [](Address wanted, const Module& module) { return wanted < module.start; });
  if (after == modules_.begin() || !(after - 1)->contains(address)) return kNotFound;
  last_hit_ = static_cast<std::uint32_t>(after - modules_.begin() - 1);
  return last_hit_;
}

void ModuleMap::cut(Address start, Address end) {
  const auto first =
      std::upper_bound(modules_.begin(), modules_.end(), start,
                       [](Address wanted, const Module& module) { return wanted < module.end; });
  const auto last = std::lower_bound(
      first, modules_.end(), end, [](const Module& module, Address wanted) { return module.start < wanted; });
  if (first == last) return;
  const Module lowest = *first;
  const Module highest = *(last - 1);
  auto position = modules_.erase(first, last);
  if (highest.end > end) position = modules_.insert(position, clipped(highest, end, highest.end));
  if (lowest.start < start) modules_.insert(position, clipped(lowest, lowest.start, start));
}

}  // namespace ddprof
