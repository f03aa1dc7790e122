#include "encode/firefox_categories.hpp"

namespace ddprof {

FirefoxCategory firefox_category(std::string_view path, std::string_view name, bool is_marker) {
  if (is_marker) return FirefoxCategory::marker;
  if (path.starts_with("[kernel") || path.ends_with(".ko") || name.ends_with("_[k]"))
    return FirefoxCategory::kernel;
  for (std::string_view start : {"[anon", "//anon", "/tmp/perf-"}) {
    if (path.starts_with(start)) return FirefoxCategory::jit;
  }
  return name.ends_with("_[j]") ? FirefoxCategory::jit : FirefoxCategory::user;
}

}  // namespace ddprof
