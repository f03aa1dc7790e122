#include "process/address_space.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// A program that maps code without end (a JIT, or a hostile one) may not grow us without end.
constexpr std::size_t kMaxMappings = 65536;

}  // namespace

void AddressSpace::map(const CodeMapping& mapping) {
  if (mapping.end <= mapping.start) return;
  auto first = std::partition_point(mappings_.begin(), mappings_.end(),
                                    [&](const CodeMapping& old) { return old.end <= mapping.start; });
  auto last = std::partition_point(first, mappings_.end(),
                                   [&](const CodeMapping& old) { return old.start < mapping.end; });
  std::vector<CodeMapping> replacement;
  if (first != last && first->start < mapping.start) {
    CodeMapping head = *first;
    head.end = mapping.start;
    replacement.push_back(head);
  }
  replacement.push_back(mapping);
  if (first != last && std::prev(last)->end > mapping.end) {
    CodeMapping tail = *std::prev(last);
    tail.file_offset += mapping.end - tail.start;
    tail.start = mapping.end;
    replacement.push_back(tail);
  }
  auto position = mappings_.erase(first, last);
  mappings_.insert(position, replacement.begin(), replacement.end());
  if (mappings_.size() > kMaxMappings) mappings_.erase(mappings_.begin());
}

const CodeMapping* AddressSpace::find(Address address) const {
  auto after = std::partition_point(mappings_.begin(), mappings_.end(),
                                    [&](const CodeMapping& mapping) { return mapping.end <= address; });
  return after != mappings_.end() && after->contains(address) ? &*after : nullptr;
}

}  // namespace ddprof
