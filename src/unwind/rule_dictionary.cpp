#include "unwind/rule_dictionary.hpp"

namespace ddprof {

RuleDictionary::RuleDictionary() {
  rules_.reserve(DDPROF_MAX_UNWIND_RULES);  // all of it at once: rules never move
  intern_slowly({DDPROF_CFA_GAP, 0, 0, 0}, 0);
  intern({DDPROF_CFA_UNSUPPORTED, 0, 0, 0});
}

RuleIndex RuleDictionary::intern_slowly(const ddprof_unwind_rule& rule, std::uint64_t key) {
  const auto next = static_cast<RuleIndex>(rules_.size());
  const auto known = indices_.find(key);
  if (known == indices_.end() && rules_.size() >= limit_) {
    ++refusals_;
    return RuleIndex::unsupported;
  }
  RuleIndex index = next;
  if (known != indices_.end()) {
    index = known->second;
  } else {
    indices_.emplace(key, next);
    rules_.push_back(rule);
  }
  recent_[recent_slot(key)] = {key, index};
  return index;
}

}  // namespace ddprof
