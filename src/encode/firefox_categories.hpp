#pragma once

#include <cstdint>
#include <string_view>

namespace ddprof {

// What colours the timeline of the Firefox Profiler. In the order of kFirefoxCategories.
enum class FirefoxCategory : std::uint8_t { other, user, kernel, jit, marker };

// The JSON of meta.categories. The first grey one is what frames without a category get.
inline constexpr std::string_view kFirefoxCategories =
    R"([{"name":"Other","color":"grey","subcategories":["Other"]},)"
    R"({"name":"User","color":"yellow","subcategories":["Other"]},)"
    R"({"name":"Kernel","color":"orange","subcategories":["Other"]},)"
    R"({"name":"JIT","color":"green","subcategories":["Other"]},)"
    R"({"name":"Not seen","color":"darkgrey","subcategories":["Other"]}])";

// `path` is that of the frame's mapping, or empty. Folded stacks mark kernel and JIT frames in the name.
FirefoxCategory firefox_category(std::string_view path, std::string_view name, bool is_marker);

}  // namespace ddprof
