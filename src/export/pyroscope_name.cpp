#include "export/pyroscope_name.hpp"

#include <algorithm>
#include <set>

#include "encode/pyroscope_profile.hpp"
#include "encode/utf8.hpp"

namespace ddprof {

namespace {

bool is_of_application(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-';
}

std::string application_name(std::string_view text) {
  std::string name(text);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_of_application(c); }, '_');
  return name.empty() ? "unknown" : name;
}

std::string label_value(std::string_view text) {
  constexpr std::string_view kSigns = "{},=\"";
  std::string value(text.substr(0, kMaxPyroscopeValue));
  std::replace_if(
      value.begin(), value.end(),
      [&](char c) { return (c >= 0 && c < ' ') || c == '\x7f' || kSigns.find(c) != std::string_view::npos; },
      '_');
  return to_utf8(value);
}

}  // namespace

std::string pyroscope_name(std::string_view application, const PyroscopeLabels& labels) {
  std::string name = application_name(application) + "{";
  std::set<std::string> known;
  for (const auto& [key, value] : labels) {
    const std::string label = pyroscope_label_name(key);
    if (value.empty() || !known.insert(label).second) continue;
    if (!name.ends_with('{')) name += ',';
    name += label;
    name += '=';
    name += label_value(value);
  }
  return name + "}";
}

}  // namespace ddprof
