#include "export/collector_url.hpp"

#include "net/url.hpp"

namespace ddprof {

Result<std::string> parse_base_url(std::string_view text) {
  TRY(Url::parse(text));
  if (text.find_first_of("?#") != std::string_view::npos)
    return make_error(ErrorCode::invalid_argument,
                      "read URL {}: a path is added to it, so it cannot have a query", without_query(text));
  while (text.ends_with('/')) text.remove_suffix(1);
  return std::string(text);
}

std::string without_query(std::string_view url) {
  return std::string(url.substr(0, url.find_first_of("?#")));
}

}  // namespace ddprof
