#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.hpp"
#include "profile/thread_table.hpp"

namespace ddprof {

struct ValueRow {
  std::uint32_t id = 0;
  std::int64_t value = 0;
};

// What each thread and each process of the table has, greatest first; those without samples are left out.
struct ThreadSums {
  std::vector<ValueRow> threads;
  std::vector<ValueRow> processes;
};

ThreadSums sum_threads(const Profile& profile, std::span<const std::uint32_t> samples,
                       const ThreadTable& table, std::size_t column);

}  // namespace ddprof
