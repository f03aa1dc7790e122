#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.hpp"
#include "export/peer.hpp"

namespace ddprof {

// A parcel as a file: a head of lines, then the body. The head has the length and the checksum of the body,
// and one of itself, so that a file that was cut anywhere is known to be.
std::string write_parcel(const Parcel& parcel);
Result<Parcel> read_parcel(std::span<const std::byte> file);

}  // namespace ddprof
