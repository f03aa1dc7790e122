#pragma once

#include "profile/profile.hpp"

namespace ddprof {

// Two profiles of one run as one: equal stacks with equal labels are added up. Columns, period and comments
// are those of `later`, which must have the columns of `earlier`; other columns of `earlier` are left out.
Profile merge(const Profile& earlier, const Profile& later);

}  // namespace ddprof
