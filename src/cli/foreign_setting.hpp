#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// A setting that was typed must be right: `trouble` becomes an error. One that a whole cluster has in
// its environment may be meant for others: it is told and left alone. `name` is the option's, `slot` its
// value.
Result<void> refuse_setting(Options& options, std::string_view name, std::string Options::*slot,
                            const Error& trouble, std::string_view hint);

}  // namespace ddprof
