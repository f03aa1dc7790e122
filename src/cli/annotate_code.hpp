#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/listing.hpp"
#include "report/view.hpp"

namespace ddprof {

// The instructions of one function with what was sampled on each, one listing per symbol that holds code of
// it (its own, and those that it was inlined into), hottest first. A listing without rows says why in
// `problem`.
std::vector<Listing> annotate_code(const ReportView& view, std::uint32_t frame);

}  // namespace ddprof
