#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// What a collector that took a request did not like about it, by its answer (an
// ExportProfilesServiceResponse): profiles that it rejected, or a warning. Empty: nothing.
std::string otlp_objection(std::string_view answer);

}  // namespace ddprof
