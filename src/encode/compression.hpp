#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

Result<std::string> gzip(std::string_view bytes, int level = 6);

[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes);

// All members of a gzip file, as one; fails when more than `limit` bytes would come out.
Result<std::string> gunzip(std::span<const std::byte> bytes, std::size_t limit);

// One frame that tells its size.
Result<std::string> zstd(std::string_view bytes, int level = 1);

}  // namespace ddprof
