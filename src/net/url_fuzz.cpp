// Arbitrary text as a URL, and as a redirection from one: what is accepted can be written and read again.
#include <cstdlib>

#include "net/url.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const Url start = *Url::parse("https://host:81/a/b?c");
  for (const auto& url : {Url::parse(text), start.follow(text)}) {
    if (!url) continue;
    const auto again = Url::parse(url->text());
    if (!again || again->text() != url->text()) std::abort();
    if (url->text().find_first_of("\r\n \t") != std::string::npos) std::abort();
  }
  return 0;
}
