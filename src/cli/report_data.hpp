#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {

struct FunctionRow {
  std::uint32_t frame = 0;
  std::int64_t self = 0;
  std::int64_t total = 0;  // with what it called; recursion counts once
};

struct ThreadRow {
  std::string process, process_id, thread, thread_id;
  std::int64_t value = 0;
};

// The sums that a report shows, in the order in which it shows them.
struct ReportData {
  std::int64_t total = 0;
  std::int64_t samples = 0;            // from the column that counts them; 0 when there is none
  std::vector<FunctionRow> functions;  // by self, then total, then name; markers left out
  std::vector<FunctionRow> missed;     // markers, by total
  std::vector<ThreadRow> threads;      // by value
  std::size_t processes = 0;
};

ReportData summarize(const Profile& profile, const FrameTable& table, std::size_t column);

}  // namespace ddprof
