#include "net/proxy_exceptions.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

// Which hosts NO_PROXY means. It has no specification; this is what curl and Go have in common, and where
// they differ, curl: "example.org" and ".example.org" both mean the name and all names below it.
namespace ddprof {

namespace {

struct HostAddress {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  unsigned bits = 0;  // 32 or 128
};

std::optional<HostAddress> parse_address(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string name(text);
  HostAddress address;
  if (::inet_pton(AF_INET, name.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (::inet_pton(AF_INET6, name.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  }
  return address.bits == 0 ? std::nullopt : std::optional(address);
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool have_same_prefix(const HostAddress& a, const HostAddress& b, unsigned bits) {
  if (a.bits != b.bits || bits > a.bits) return false;
  for (unsigned i = 0; i < bits; ++i) {
    const unsigned difference = static_cast<unsigned>(a.bytes[i / 8]) ^ b.bytes[i / 8];
    if ((difference >> (7 - i % 8) & 1U) != 0) return false;
  }
  return true;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_below(std::string_view host, std::string_view domain) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (domain.ends_with('.')) domain.remove_suffix(1);
  if (domain.starts_with("*.")) domain.remove_prefix(1);
  if (domain.starts_with('.')) domain.remove_prefix(1);
  if (domain.empty() || host.size() < domain.size()) return false;
  const std::size_t start = host.size() - domain.size();
  return is_same_name(host.substr(start), domain) && (start == 0 || host[start - 1] == '.');
}

// An address of IPv6 has colons of its own, so a port only follows a bracket or the one colon.
std::string_view take_port(std::string_view entry, std::optional<std::uint16_t>& port) {
  const std::size_t colon = entry.rfind(':');
  const bool is_port =
      colon != std::string_view::npos && colon > 0 && (entry[colon - 1] == ']' || entry.find(':') == colon);
  if (!is_port) return entry;
  port = parse_number<std::uint16_t>(entry.substr(colon + 1)).value_or(0);  // no host has that one
  return entry.substr(0, colon);
}

bool means(std::string_view entry, std::string_view host, std::uint16_t port) {
  if (entry == "*") return true;
  const auto address = parse_address(host);
  if (const std::size_t slash = entry.find('/'); slash != std::string_view::npos) {
    const auto network = parse_address(entry.substr(0, slash));
    const auto bits = parse_number<unsigned>(entry.substr(slash + 1));
    return address && network && bits && have_same_prefix(*address, *network, *bits);
  }
  std::optional<std::uint16_t> wanted_port;
  entry = take_port(entry, wanted_port);
  if (wanted_port && *wanted_port != port) return false;
  const auto wanted = parse_address(entry);
  if (address || wanted) return address && wanted && have_same_prefix(*address, *wanted, address->bits);
  return is_below(host, entry);
}

}  // namespace

bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(kSeparators), list.size());
    if (end != 0 && means(list.substr(0, end), host, port)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace ddprof
