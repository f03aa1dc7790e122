#include "export/statsd.hpp"

#include <cmath>
#include <utility>

namespace ddprof {

namespace {

constexpr std::size_t kMaxTagBytes = 200;  // what Datadog keeps of one

// The format has no escapes: what would end a tag or a line becomes an underscore.
char as_tag_character(char each) {
  const auto byte = static_cast<unsigned char>(each);
  return byte < 0x20 || byte == 0x7f || each == ',' || each == '|' ? '_' : each;
}

// At most so many bytes, and no half of a UTF-8 sequence.
std::string_view shorten(std::string_view text) {
  if (text.size() <= kMaxTagBytes) return text;
  std::size_t end = kMaxTagBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return text.substr(0, end);
}

std::string tag_field(const std::vector<std::string>& tags) {
  std::string field;
  for (const std::string& tag : tags) {
    if (tag.empty()) continue;
    field += field.empty() ? "|#" : ",";
    for (const char each : shorten(tag)) field += as_tag_character(each);
  }
  return field;
}

}  // namespace

Result<StatsdClient> StatsdClient::open(std::string_view where, const std::vector<std::string>& tags) {
  return StatsdClient(StatsdSocket(TRY(StatsdAddress::parse(where))), tag_field(tags));
}

void StatsdClient::gauge(std::string_view name, double value) {
  if (!std::isfinite(value)) return;  // a share of nothing: there is no such line
  add(fmt::format("{}:{}|g{}", name, value, tags_));
}

void StatsdClient::count(std::string_view name, std::int64_t value) {
  add(fmt::format("{}:{}|c{}", name, value, tags_));
}

void StatsdClient::add(const std::string& line) {
  if (line.size() > socket_.max_bytes()) {
    drop(1, make_error(ErrorCode::exhausted,
                       "statsd: a line of {} bytes does not fit in a datagram of {}: too many tags",
                       line.size(), socket_.max_bytes()));
    return;
  }
  if (!datagram_.empty() && datagram_.size() + 1 + line.size() > socket_.max_bytes()) flush();
  if (!datagram_.empty()) datagram_ += '\n';
  datagram_ += line;
  ++lines_;
}

void StatsdClient::flush() {
  if (datagram_.empty()) return;
  if (auto sent = socket_.send(datagram_); !sent) drop(lines_, std::move(sent).error());
  datagram_.clear();
  lines_ = 0;
}

void StatsdClient::drop(std::uint64_t lines, Error error) {
  dropped_ += lines;
  if (!std::exchange(has_failed_, true)) error_ = std::move(error);
}

std::optional<Error> StatsdClient::take_error() { return std::exchange(error_, std::nullopt); }

}  // namespace ddprof
