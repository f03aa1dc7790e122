#include "report/headline.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "profile/snapshot.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kNoPayer = 0xffffffff;
constexpr double kStandsOut = 0.3;  // from which share a function can be the answer
constexpr double kSeveral = 0.5;    // three functions with so much together are the answer
constexpr double kMostlyKernel = 0.4;
constexpr double kMostlyOther = 0.7;  // outside of own code
constexpr double kNearlyAll = 0.9;    // of one process: the others are not worth a word
constexpr double kUnder = 0.75;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// Sums by key, and the greatest of them.
template <typename Key>
class Tally {
 public:
  void add(const Key& key, std::int64_t value) {
    std::int64_t& sum = sums_[key];
    sum = saturating_add(sum, value);
  }
  // The smaller key among equals, so that the same profile has the same answer.
  [[nodiscard]] std::optional<std::pair<Key, std::int64_t>> greatest() const {
    std::optional<std::pair<Key, std::int64_t>> best;
    for (const auto& [key, value] : sums_) {
      if (!best || value > best->second || (value == best->second && key < best->first))
        best.emplace(key, value);
    }
    return best;
  }

 private:
  absl::flat_hash_map<Key, std::int64_t> sums_;
};

// "__x64_sys_write" -> "write".
std::string_view system_call_of(std::string_view name) {
  for (std::string_view prefix : {"__x64_sys_", "__arm64_sys_", "__ia32_sys_", "__se_sys_", "__do_sys_"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  if (name == "asm_exc_page_fault" || name == "exc_page_fault" || name == "do_user_addr_fault")
    return "page faults";
  return {};
}

// "__GI___libc_read" -> "read": the C library's function that makes the call.
std::string_view wrapped_call(std::string_view name) {
  for (std::string_view prefix : {"__GI_", "__libc_", "__"}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  for (std::string_view suffix : {"_nocancel", "64"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name;
}

// Where programs begin: that everything is below says nothing.
bool is_main(std::string_view name) {
  const std::string whole = qualified_name(name);
  const std::string_view plain = std::string_view(whole).substr(whole.find_last_of(":.") + 1);
  return plain == "main" || plain == "Main";
}

// The functions that pay for some samples of a view.
class Payers {
 public:
  Payers(const ReportView& view, const OwnCode& own, std::vector<std::uint32_t> samples)
      : view_(view),
        own_(own),
        samples_(std::move(samples)),
        sums_(view.frames.size()),
        groups_(view.frames.size()) {
    group_unnamed();
    payer_of_.reserve(samples_.size());
    for (std::uint32_t sample : samples_) payer_of_.push_back(charge(sample));
  }

  Headline headline(std::size_t most) {
    Headline result;
    result.noun = noun_of_type(view_.type, view_.left.size, view_.unit);
    if (is_snapshot(view_.type)) result.verb = "was allocated by";
    if (view_.type.starts_with("alloc")) result.verb = "by";
    result.whole = whole_;
    result.samples = count_;
    result.missed = missed_;
    if (const auto reason = reasons_.greatest())
      result.missed_reason =
          view_.frames[reason->first].name.substr(1, view_.frames[reason->first].name.size() - 2);
    std::vector<std::uint32_t> order;
    for (std::uint32_t frame = 0; frame < sums_.size(); ++frame) {
      if (sums_[frame] > 0) order.push_back(frame);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      return std::pair(-sums_[left], std::string_view(view_.frames[left].name)) <
             std::pair(-sums_[right], std::string_view(view_.frames[right].name));
    });
    result.payer_count = order.size();
    if (order.empty() || has_negative_) return result;
    order.resize(std::min(order.size(), std::max<std::size_t>(most, 3)));
    describe(order, result);
    choose(result);
    result.payers.resize(std::min(result.payers.size(), most));
    return result;
  }

 private:
  // What is collected of one payer in a second look.
  struct Details {
    Tally<std::pair<StringIndex, std::int64_t>> places;
    Tally<std::uint32_t> callers, callees;
  };

  // A module without symbols has a frame for each address; it pays as one. A few names, of the dynamic
  // linker's table, do not make it a module with symbols.
  void group_unnamed() {
    std::iota(groups_.begin(), groups_.end(), 0U);
    struct Names {
      std::size_t named = 0, unnamed = 0;
      std::uint32_t first = 0;
    };
    std::map<std::string_view, Names> modules;
    for (std::uint32_t frame = 0; frame < groups_.size(); ++frame) {
      const NamedFrame& known = view_.frames[frame];
      Names& names = modules[known.module];
      if (known.is_unnamed && names.unnamed++ == 0) names.first = frame;
      if (!known.is_unnamed && !known.name.ends_with("@plt")) names.named++;
    }
    constexpr std::size_t kFew = 4;
    for (std::uint32_t frame = 0; frame < groups_.size(); ++frame) {
      const Names& names = modules[view_.frames[frame].module];
      const bool has_symbols = names.named > kFew && names.named * kFew > names.unnamed;
      if (!view_.frames[frame].is_unnamed || has_symbols) continue;
      groups_[frame] = names.first;
      is_grouped_.insert(view_.frames[frame].module);
    }
  }

  // Calls `visit(frame, location, line)` from the innermost frame on, until it returns true.
  template <typename Visit>
  void walk(std::uint32_t sample, Visit&& visit) const {
    for (std::uint32_t location : view_.profile.samples[sample].locations) {
      const auto frames = view_.frames.frames(location);
      for (std::size_t line = 0; line < frames.size(); ++line) {
        if (visit(frames[line], location, line)) return;
      }
    }
  }

  std::uint32_t charge(std::uint32_t sample) {
    const ProfileSample& one = view_.profile.samples[sample];
    const std::int64_t value = one.values[view_.column];
    if (value == 0) return kNoPayer;
    has_negative_ |= value < 0;
    whole_ = saturating_add(whole_, size_of_value(value));
    if (counts_) count_ = saturating_add(count_, one.values[*counts_]);
    note_missed(one, value);
    std::uint32_t payer = kNoPayer, otherwise = kNoPayer;
    bool is_kernel = false;
    walk(sample, [&](std::uint32_t frame, std::uint32_t, std::size_t) {
      const CodeRole role = own_.role(frame);
      if (role == CodeRole::own) payer = frame;
      if (otherwise == kNoPayer && role == CodeRole::kernel) is_kernel = true;
      const bool is_user = role == CodeRole::library || role == CodeRole::interpreter;
      if (otherwise == kNoPayer && is_user) otherwise = frame;
      return payer != kNoPayer;
    });
    if (is_kernel) kernel_ = saturating_add(kernel_, value);
    if (payer == kNoPayer) payer = otherwise;
    if (payer == kNoPayer) return is_kernel ? charge_to(first_frame(sample), value) : kNoPayer;
    return charge_to(groups_[payer], value);
  }

  // What the error rests on where samples were not counted.
  [[nodiscard]] std::int64_t stacks() const { return std::max<std::int64_t>(std::ssize(samples_), 1); }

  std::uint32_t charge_to(std::uint32_t payer, std::int64_t value) {
    sums_[payer] = saturating_add(sums_[payer], value);
    return payer;
  }

  [[nodiscard]] std::uint32_t first_frame(std::uint32_t sample) const {
    return view_.frames.frames(view_.profile.samples[sample].locations.front()).front();
  }

  // Markers stand at the root of a stack that is cut, and alone where there is none.
  void note_missed(const ProfileSample& sample, std::int64_t value) {
    if (sample.locations.empty()) return;
    const std::uint32_t root = view_.frames.frames(sample.locations.back()).back();
    if (!view_.frames[root].is_marker) return;
    missed_ = saturating_add(missed_, size_of_value(value));
    reasons_.add(root, size_of_value(value));
  }

  void describe(const std::vector<std::uint32_t>& order, Headline& result) const {
    std::map<std::uint32_t, Details> details;
    for (std::uint32_t payer : order) details[payer];
    for (std::size_t at = 0; at < samples_.size(); ++at) {
      const auto found = details.find(payer_of_[at]);
      if (found != details.end()) collect(samples_[at], found->first, found->second);
    }
    for (std::uint32_t payer : order) result.payers.push_back(payer_of(payer, details[payer]));
  }

  void collect(std::uint32_t sample, std::uint32_t payer, Details& details) const {
    const std::int64_t value = view_.profile.samples[sample].values[view_.column];
    bool is_found = false;
    std::uint32_t callee = kNoPayer;
    walk(sample, [&](std::uint32_t frame, std::uint32_t location, std::size_t line) {
      const bool is_payer = groups_[frame] == payer;
      if (!is_found && is_payer) {
        is_found = true;
        const auto& lines = view_.profile.locations[location].lines;
        if (line < lines.size())
          details.places.add({view_.profile.functions[lines[line].function].file, lines[line].line}, value);
        if (callee != kNoPayer) details.callees.add(groups_[callee], value);
      }
      if (!is_found) {
        callee = frame;
        return false;
      }
      if (is_payer || !own_.is_own(frame)) return false;
      details.callers.add(groups_[frame], value);
      return true;
    });
  }

  // Whether a payer stands for a module without symbols.
  [[nodiscard]] bool is_module(std::uint32_t frame) const {
    return view_.frames[frame].is_unnamed && is_grouped_.contains(view_.frames[frame].module);
  }

  [[nodiscard]] std::string name_of(std::uint32_t frame) const {
    const NamedFrame& known = view_.frames[frame];
    return is_module(frame) ? known.module : code_name(known.name).name;
  }

  [[nodiscard]] Payer payer_of(std::uint32_t frame, const Details& details) const {
    const NamedFrame& known = view_.frames[frame];
    const CodeName code = code_name(known.name);
    Payer payer{.name = name_of(frame),
                .module = known.module,
                .file = code.file,
                .line = code.line,
                .value = sums_[frame],
                .is_own = own_.is_own(frame),
                .is_unnamed = is_module(frame)};
    if (const auto place = details.places.greatest(); place && payer.file.empty()) {
      payer.file = view_.profile.text(place->first.first);
      payer.line = place->first.second;
    }
    const auto is_most = [&](const auto& found) { return found && found->second >= payer.value / 2; };
    // That a module without symbols is called by its own main says nothing.
    const auto is_elsewhere = [&](std::uint32_t other) { return view_.frames[other].module != known.module; };
    if (const auto caller = details.callers.greatest();
        is_most(caller) && (!payer.is_unnamed || is_elsewhere(caller->first))) {
      payer.caller = name_of(caller->first);
      payer.caller_value = caller->second;
    }
    if (const auto callee = details.callees.greatest(); is_most(callee)) {
      if (is_elsewhere(callee->first) && own_.role(callee->first) != CodeRole::kernel) {
        payer.callee = name_of(callee->first);
        payer.callee_module = view_.frames[callee->first].module;
      }
    }
    return payer;
  }

  void choose(Headline& result) const {
    const std::vector<Payer>& payers = result.payers;
    const double first = share(payers[0].value, whole_);
    const double second = payers.size() > 1 ? share(payers[1].value, whole_) : 0;
    const double error =
        2 * std::sqrt(first * (1 - first) / static_cast<double>(count_ > 0 ? count_ : stacks()));
    std::int64_t three = 0;
    for (std::size_t at = 0; at < std::min<std::size_t>(payers.size(), 3); ++at)
      three = saturating_add(three, payers[at].value);
    if (share(kernel_, whole_) >= kMostlyKernel) {
      result.kind = Headline::Kind::kernel;
      name_system_call(result);
    } else if (is_foreign(result)) {
      // named by is_foreign
    } else if (first >= kStandsOut && first - error > second) {
      result.kind = Headline::Kind::one;
    } else if (share(three, whole_) >= kSeveral) {
      result.kind = Headline::Kind::several;
    } else {
      result.kind = Headline::Kind::spread;
      find_common_root(result);
    }
  }

  // The system call, or what else led into the kernel.
  void name_system_call(Headline& result) const {
    Tally<std::string_view> calls;
    for (std::uint32_t sample : samples_) {
      const std::int64_t value = view_.profile.samples[sample].values[view_.column];
      std::string_view call;
      bool is_kernel = false;
      walk(sample, [&](std::uint32_t frame, std::uint32_t, std::size_t) {
        const NamedFrame& known = view_.frames[frame];
        if (own_.role(frame) == CodeRole::kernel) {
          is_kernel = true;
          if (call.empty()) call = system_call_of(known.name);
          return false;
        }
        if (is_kernel && call.empty() && known.module.starts_with("libc.")) call = wrapped_call(known.name);
        return true;
      });
      if (!call.empty()) calls.add(call, value);
    }
    result.kernel_value = kernel_;
    if (const auto greatest = calls.greatest()) {
      result.system_call = greatest->first;
      result.system_call_value = greatest->second;
    }
  }

  // Whether most is spent by functions outside of the program's own code, and in which module.
  bool is_foreign(Headline& result) const {
    std::int64_t foreign = 0;
    Tally<std::string_view> modules;
    std::map<std::string_view, CodeRole> roles;
    for (std::uint32_t frame = 0; frame < sums_.size(); ++frame) {
      if (sums_[frame] <= 0 || own_.is_own(frame)) continue;
      foreign = saturating_add(foreign, sums_[frame]);
      modules.add(view_.frames[frame].module, sums_[frame]);
      roles.emplace(view_.frames[frame].module, own_.role(frame));
    }
    const auto module = modules.greatest();
    if (!module || share(foreign, whole_) < kMostlyOther) return false;
    const bool is_interpreter = roles[module->first] == CodeRole::interpreter;
    result.kind = is_interpreter ? Headline::Kind::interpreter : Headline::Kind::library;
    result.module = module->first;
    result.module_value = module->second;
    return true;
  }

  // The own function with the least total that still has most of it: what a flat profile has in common.
  void find_common_root(Headline& result) const {
    const std::vector<StackSum> sums =
        sum_stacks(view_.profile, samples_, view_.frames.ids(), view_.frames.size(), view_.column);
    std::optional<std::uint32_t> best;
    for (std::uint32_t frame = 0; frame < sums.size(); ++frame) {
      const bool is_candidate = own_.is_own(frame) && !view_.frames[frame].is_unnamed &&
                                !is_main(view_.frames[frame].name) &&
                                share(sums[frame].total, whole_) >= kUnder;
      if (is_candidate && (!best || sums[frame].total < sums[*best].total)) best = frame;
    }
    if (!best) return;
    result.under = name_of(*best);
    result.under_value = sums[*best].total;
  }

  const ReportView& view_;
  const OwnCode& own_;
  std::vector<std::uint32_t> samples_;
  std::vector<std::int64_t> sums_;         // by payer
  std::vector<std::uint32_t> groups_;      // the frame that stands for each
  std::set<std::string_view> is_grouped_;  // modules
  std::vector<std::uint32_t> payer_of_;    // by position in samples_
  std::optional<std::size_t> counts_ = samples_column(view_.profile);
  Tally<std::uint32_t> reasons_;
  std::int64_t whole_ = 0, count_ = 0, kernel_ = 0, missed_ = 0;
  bool has_negative_ = false;
};

// The samples of each process name, the most expensive first.
std::vector<std::pair<std::string, std::vector<std::uint32_t>>> by_process(const ReportView& view) {
  std::map<std::string, std::pair<std::int64_t, std::vector<std::uint32_t>>> groups;
  for (std::uint32_t sample : view.selected.samples) {
    const SampledThread& thread = view.threads.threads()[view.threads.of(sample)];
    auto& [value, samples] = groups[view.threads.processes()[thread.process].name];
    value = saturating_add(value, size_of_value(view.profile.samples[sample].values[view.column]));
    samples.push_back(sample);
  }
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, group] : groups) order.emplace_back(-group.first, name);
  std::sort(order.begin(), order.end());
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> sorted;
  for (const auto& [value, name] : order) sorted.emplace_back(name, std::move(groups[name].second));
  return sorted;
}

}  // namespace

Headline headline_of(const ReportView& view, const OwnCode& own, std::size_t payers) {
  return Payers(view, own, view.selected.samples).headline(payers);
}

std::vector<Headline> headlines_of(const ReportView& view, const OwnCode& own, std::size_t processes) {
  auto groups = by_process(view);
  const auto size_of = [&](const std::vector<std::uint32_t>& samples) {
    return sum_samples(view.profile, samples, view.column).size;
  };
  // Time that was lost together with whose it was is no process beside the others.
  if (groups.size() > 1) std::erase_if(groups, [](const auto& group) { return group.first.empty(); });
  std::int64_t of_processes = 0;
  for (const auto& [name, samples] : groups) of_processes = saturating_add(of_processes, size_of(samples));
  if (groups.size() < 2 || share(size_of(groups.front().second), of_processes) >= kNearlyAll)
    return {headline_of(view, own)};
  groups.resize(std::min(groups.size(), processes));
  std::vector<Headline> headlines;
  for (auto& [name, samples] : groups) {
    Headline one = Payers(view, own, std::move(samples)).headline(kHeadlinePayers);
    one.process = name.empty() ? "process" : name;
    one.all_processes = view.left.size;
    headlines.push_back(std::move(one));
  }
  return headlines;
}

}  // namespace ddprof
