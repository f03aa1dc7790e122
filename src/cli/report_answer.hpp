#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/report_page.hpp"
#include "profile/profile.hpp"
#include "report/headline.hpp"
#include "report/view.hpp"

namespace ddprof {

// What a report begins with and a recording ends with: the headline, and below it who pays. `headlines` has
// one, or one for each of several processes.
void write_answer(ReportPage& page, const ReportView& view, const std::vector<Headline>& headlines);

// The same of a whole profile, as text; empty when nothing can be said.
std::string answer_text(const Profile& profile, std::size_t width, bool color);

}  // namespace ddprof
