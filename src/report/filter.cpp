#include "report/filter.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/text_pattern.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxNamesInError = 8;

using LocationFlags = std::vector<bool>;

// The locations of which a function, its file or the module matches, by one look at each distinct text.
class LocationMatcher {
 public:
  LocationMatcher(const Profile& profile, const FrameTable& table, const TextPattern& pattern)
      : profile_(profile), table_(table), pattern_(pattern), frames_(table.size(), kUnknown) {}

  [[nodiscard]] LocationFlags matching() {
    LocationFlags flags(profile_.locations.size());
    for (std::uint32_t at = 0; at < flags.size(); ++at) flags[at] = is_match(at);
    return flags;
  }

 private:
  enum Verdict : std::uint8_t { kUnknown, kNo, kYes };

  bool is_match(std::uint32_t at) {
    const ProfileLocation& location = profile_.locations[at];
    for (std::uint32_t frame : table_.frames(at)) {
      if (frames_[frame] == kUnknown) frames_[frame] = pattern_.matches(table_[frame].name) ? kYes : kNo;
      if (frames_[frame] == kYes) return true;
    }
    if (location.mapping != kNoMapping && matches(profile_.mappings[location.mapping].path)) return true;
    return std::any_of(location.lines.begin(), location.lines.end(), [&](const ProfileLine& line) {
      return matches(profile_.functions[line.function].file);
    });
  }

  bool matches(StringIndex text) {
    if (text == 0) return false;
    const auto [entry, is_new] = texts_.emplace(text, false);
    if (is_new) entry->second = pattern_.matches(profile_.strings[text]);
    return entry->second;
  }

  const Profile& profile_;
  const FrameTable& table_;
  const TextPattern& pattern_;
  std::vector<Verdict> frames_;
  absl::flat_hash_map<StringIndex, bool> texts_;
};

struct Named {
  std::string name, id;
};

std::string described(const Named& one) {
  if (one.name.empty()) return one.id.empty() ? "(no name)" : one.id;
  return one.id.empty() ? one.name : fmt::format("{} ({})", one.name, one.id);
}

// The ones that are meant: by id or whole name; else by a part of the name.
// `option` is how the user asked for it.
Result<std::vector<bool>> choose(const std::vector<Named>& all, const std::string& wanted,
                                 const std::string& option) {
  const auto flags_of = [&](const std::function<bool(const Named&)>& is_meant) {
    std::vector<bool> flags;
    for (const Named& one : all) flags.push_back(is_meant(one));
    return flags;
  };
  const auto any = [](const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  };
  auto flags = flags_of([&](const Named& one) { return one.id == wanted || one.name == wanted; });
  if (any(flags)) return flags;
  flags = flags_of([&](const Named& one) { return one.name.find(wanted) != std::string::npos; });
  if (any(flags)) return flags;
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(described(one));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::size_t shown = std::min(names.size(), kMaxNamesInError);
  return make_error(ErrorCode::not_found, "{}: not in this profile, which has {}{}", option,
                    fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                    shown < names.size() ? ", …" : "");
}

class Selection {
 public:
  Selection(const Profile& profile, const FrameTable& table, const ThreadTable& threads)
      : profile_(profile), table_(table), threads_(threads) {
    selected_.samples.resize(profile.samples.size());
    std::iota(selected_.samples.begin(), selected_.samples.end(), 0U);
  }

  Result<void> keep_thread(const std::string& wanted) {
    std::vector<Named> all;
    for (const SampledThread& thread : threads_.threads()) all.push_back({thread.name, thread.id});
    const std::vector<bool> is_meant = TRY(choose(all, wanted, "--thread " + wanted));
    keep([&](std::uint32_t sample) { return is_meant[threads_.of(sample)]; });
    selected_.descriptions.push_back("thread " + wanted);
    return {};
  }

  Result<void> keep_process(const std::string& wanted) {
    std::vector<Named> all;
    for (const SampledProcess& process : threads_.processes()) all.push_back({process.name, process.id});
    const std::vector<bool> is_meant = TRY(choose(all, wanted, "--process " + wanted));
    keep([&](std::uint32_t sample) { return is_meant[threads_.threads()[threads_.of(sample)].process]; });
    selected_.descriptions.push_back("process " + wanted);
    return {};
  }

  // By the innermost frame, as of the values per module.
  Result<void> keep_module(const std::string& wanted) {
    const auto name_of = [&](std::uint32_t mapping) {
      return Named{std::string(base_name(profile_.text(profile_.mappings[mapping].path))),
                   std::string(profile_.text(profile_.mappings[mapping].path))};
    };
    std::vector<Named> all;
    for (std::uint32_t mapping = 0; mapping < profile_.mappings.size(); ++mapping)
      all.push_back(name_of(mapping));
    const std::vector<bool> is_meant = TRY(choose(all, wanted, "--only-module " + wanted));
    keep([&](std::uint32_t sample) {
      const auto& locations = profile_.samples[sample].locations;
      if (locations.empty()) return false;
      const std::uint32_t mapping = profile_.locations[locations.front()].mapping;
      return mapping != kNoMapping && is_meant[mapping];
    });
    selected_.descriptions.push_back("code of " + wanted);
    return {};
  }

  // "service=shop"
  Result<void> keep_label(const std::string& condition) {
    const std::size_t equals = condition.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == condition.size())
      return make_error(ErrorCode::invalid_argument, "--label {}: must be KEY=VALUE, such as service=shop",
                        condition);
    const std::string key = condition.substr(0, equals);
    std::vector<Named> all;
    absl::flat_hash_map<std::string, std::size_t> position;  // in `all`, by value
    for (const ProfileSample& sample : profile_.samples) {
      std::string value = label_text(profile_, sample, key);
      if (position.try_emplace(value, all.size()).second) all.push_back({std::move(value), ""});
    }
    const std::vector<bool> is_meant = TRY(choose(all, condition.substr(equals + 1), "--label " + condition));
    keep([&](std::uint32_t sample) {
      return is_meant[position[label_text(profile_, profile_.samples[sample], key)]];
    });
    selected_.descriptions.push_back("label " + condition);
    return {};
  }

  Result<void> keep_stacks(const std::string& expression, bool that_match) {
    auto pattern = TextPattern::compile(expression);
    if (!pattern) {
      pattern.error().message.insert(0, that_match ? "--focus: " : "--ignore: ");
      return std::move(pattern).error();
    }
    const LocationFlags flags = LocationMatcher(profile_, table_, *pattern).matching();
    keep([&](std::uint32_t sample) {
      const auto& locations = profile_.samples[sample].locations;
      const bool is_match = std::any_of(locations.begin(), locations.end(),
                                        [&](std::uint32_t location) { return flags[location]; });
      return is_match == that_match;
    });
    selected_.descriptions.push_back((that_match ? "stacks with " : "stacks without ") + expression);
    return {};
  }

  SelectedSamples result() && { return std::move(selected_); }

 private:
  template <typename Keep>
  void keep(Keep&& is_kept) {
    std::erase_if(selected_.samples, [&](std::uint32_t sample) { return !is_kept(sample); });
  }

  const Profile& profile_;
  const FrameTable& table_;
  const ThreadTable& threads_;
  SelectedSamples selected_;
};

}  // namespace

Result<SelectedSamples> select_samples(const Profile& profile, const FrameTable& table,
                                       const ThreadTable& threads, const ReportFilter& filter) {
  Selection selection(profile, table, threads);
  if (!filter.process.empty()) TRY(selection.keep_process(filter.process));
  if (!filter.thread.empty()) TRY(selection.keep_thread(filter.thread));
  if (!filter.module.empty()) TRY(selection.keep_module(filter.module));
  for (const std::string& condition : filter.labels) TRY(selection.keep_label(condition));
  for (const std::string& expression : filter.focus) TRY(selection.keep_stacks(expression, true));
  for (const std::string& expression : filter.ignore) TRY(selection.keep_stacks(expression, false));
  return std::move(selection).result();
}

}  // namespace ddprof
