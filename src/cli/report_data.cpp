#include "cli/report_data.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "profile/labels.hpp"

namespace ddprof {

namespace {

std::optional<std::size_t> samples_column(const Profile& profile) {
  for (std::size_t column = 0; column < profile.value_types.size(); ++column) {
    const ValueType& type = profile.value_types[column];
    if (profile.text(type.unit) == "count" && profile.text(type.type).ends_with("samples")) return column;
  }
  return std::nullopt;
}

class FunctionSums {
 public:
  explicit FunctionSums(const FrameTable& table)
      : table_(table), rows_(table.size()), last_seen_(table.size()) {
    for (std::uint32_t frame = 0; frame < rows_.size(); ++frame) rows_[frame].frame = frame;
  }

  void add(const ProfileSample& sample, std::int64_t value) {
    ++turn_;
    bool is_leaf = true;
    for (std::uint32_t location : sample.locations) {
      for (std::uint32_t frame : table_.frames(location)) {
        FunctionRow& row = rows_[frame];
        if (is_leaf) row.self = saturating_add(row.self, value);
        is_leaf = false;
        if (last_seen_[frame] == turn_) continue;
        last_seen_[frame] = turn_;
        row.total = saturating_add(row.total, value);
      }
    }
  }

  // Hands the rows over, sorted: code to `functions`, markers to `missed`.
  void split(std::vector<FunctionRow>& functions, std::vector<FunctionRow>& missed) && {
    for (const FunctionRow& row : rows_) {
      if (row.total != 0) (table_[row.frame].is_marker ? missed : functions).push_back(row);
    }
    const auto rank = [&](const FunctionRow& row) {
      return std::tuple<std::int64_t, std::int64_t, const std::string&, const std::string&>(
          -row.self, -row.total, table_[row.frame].name, table_[row.frame].module);
    };
    std::sort(functions.begin(), functions.end(),
              [&](const FunctionRow& left, const FunctionRow& right) { return rank(left) < rank(right); });
    std::sort(missed.begin(), missed.end(), [&](const FunctionRow& left, const FunctionRow& right) {
      return std::tie(right.total, table_[left.frame].name) < std::tie(left.total, table_[right.frame].name);
    });
  }

 private:
  const FrameTable& table_;
  std::vector<FunctionRow> rows_;
  std::vector<std::uint64_t> last_seen_;
  std::uint64_t turn_ = 0;
};

class ThreadSums {
 public:
  void add(const Profile& profile, const ProfileSample& sample, std::int64_t value) {
    Key key(label_text(profile, sample, kProcessIdLabel), label_text(profile, sample, kProcessNameLabel),
            label_text(profile, sample, kThreadIdLabel), label_text(profile, sample, kThreadNameLabel));
    std::int64_t& sum = sums_[std::move(key)];
    sum = saturating_add(sum, value);
  }

  void finish(ReportData& data) const {
    std::set<std::pair<std::string, std::string>> processes;
    for (const auto& [key, value] : sums_) {
      const auto& [process_id, process, thread_id, thread] = key;
      data.threads.push_back({process, process_id, thread, thread_id, value});
      processes.emplace(process_id, process);
    }
    data.processes = processes.size();
    std::stable_sort(data.threads.begin(), data.threads.end(),
                     [](const ThreadRow& left, const ThreadRow& right) { return left.value > right.value; });
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::int64_t> sums_;
};

}  // namespace

ReportData summarize(const Profile& profile, const FrameTable& table, std::size_t column) {
  ReportData data;
  FunctionSums functions(table);
  ThreadSums threads;
  const std::optional<std::size_t> counts = samples_column(profile);
  for (const ProfileSample& sample : profile.samples) {
    const std::int64_t value = sample.values[column];
    data.total = saturating_add(data.total, value);
    if (counts) data.samples = saturating_add(data.samples, sample.values[*counts]);
    functions.add(sample, value);
    threads.add(profile, sample, value);
  }
  std::move(functions).split(data.functions, data.missed);
  threads.finish(data);
  return data;
}

}  // namespace ddprof
