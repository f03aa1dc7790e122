#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/listing.hpp"
#include "report/view.hpp"

namespace ddprof {

// The source of one function with what was sampled on each line, one listing per file; empty when the profile
// has no lines of it. Inlined copies of the function count where they ran.
std::vector<Listing> annotate_source(const ReportView& view, std::uint32_t frame,
                                     const std::string& source_dir);

}  // namespace ddprof
