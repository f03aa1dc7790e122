#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/sums.hpp"

namespace ddprof {

// One line of source or one instruction, with what was sampled on it.
struct ListingRow {
  std::uint64_t number = 0;  // of the line, or the instruction's address in the file
  StackSum sum = {};
  std::string text = {};
  std::string place = {};  // instructions: "app.cc:34" where the profile knows it
};

struct Listing {
  std::string title = {};          // the file or the symbol
  std::string problem = {};        // why there is no text
  std::string note = {};           // what to keep in mind
  std::vector<ListingRow> rows{};  // where numbers jump, cold rows are left out
};

// Leaves out of a long listing what is not near the hottest rows.
void keep_hot_rows(std::vector<ListingRow>& rows);

// The hottest rows by self, then by total, at most `count`; none that are empty.
std::vector<const ListingRow*> hottest_rows(const std::vector<ListingRow>& rows, std::size_t count);

}  // namespace ddprof
