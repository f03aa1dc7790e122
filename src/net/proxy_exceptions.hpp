#pragma once

#include <cstdint>
#include <string_view>

namespace ddprof {

// Whether the list of NO_PROXY, such as "localhost,.example.org,10.0.0.0/8,[fd00::]/8,host:8080,*", has the
// host.
[[nodiscard]] bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port);

}  // namespace ddprof
