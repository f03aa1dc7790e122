#include "export/parcel_file.hpp"

#include <zlib.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace ddprof {

namespace {

constexpr std::string_view kFirstLine = "ddprof parcel 1\n";
constexpr std::string_view kLastField = "head-checksum";
constexpr std::size_t kMostHeadBytes = std::size_t{64} << 10U;
constexpr std::size_t kMostHeaders = 64;

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// A field ends with its line.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r' || c == '\0') c = ' ';
  return line;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error cut(std::string_view what) { return make_error(ErrorCode::corrupt, "parcel: {}", what); }

// The lines of a head, field by field.
class HeadReader {
 public:
  explicit HeadReader(std::string_view text) : text_(text) {}

  struct Field {
    std::string_view name, value;
  };
  std::optional<Field> next() {
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text_.substr(at_, end - at_);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return std::nullopt;
    before_ = at_;
    at_ = end + 1;
    return Field{line.substr(0, colon), line.substr(colon + 2)};
  }
  // Up to the field that was read last, and behind it.
  [[nodiscard]] std::string_view before() const { return text_.substr(0, before_); }
  [[nodiscard]] std::size_t position() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = kFirstLine.size();
  std::size_t before_ = 0;
};

struct HeadFields {
  Parcel parcel;
  std::optional<std::uint64_t> body_bytes;
  std::optional<std::uint32_t> body_checksum;
};

bool take_time(Nanoseconds& time, std::string_view text) {
  const auto count = number_of<std::int64_t>(text);
  if (count) time = Nanoseconds(*count);
  return count.has_value();
}

// False: not a value of this field. Fields of later versions are passed over.
bool take_field(const HeadReader::Field& field, HeadFields& head) {
  Parcel& parcel = head.parcel;
  const auto [name, value] = field;
  if (name == "sequence") {
    const auto sequence = number_of<std::uint64_t>(value);
    parcel.sequence = sequence.value_or(0);
    return sequence.has_value();
  }
  if (name == "start") return take_time(parcel.start, value);
  if (name == "end") return take_time(parcel.end, value);
  if (name == "query") parcel.query = value;
  if (name == "content-type") parcel.content_type = value;
  if (name == "body-bytes") return (head.body_bytes = number_of<std::uint64_t>(value)).has_value();
  if (name == "body-checksum") return (head.body_checksum = number_of<std::uint32_t>(value)).has_value();
  if (name != "header") return true;
  const std::size_t colon = value.find(": ");
  if (colon == std::string_view::npos || parcel.headers.size() >= kMostHeaders) return false;
  parcel.headers.emplace_back(value.substr(0, colon), value.substr(colon + 2));
  return true;
}

}  // namespace

std::string write_parcel(const Parcel& parcel) {
  std::string file(kFirstLine);
  file += fmt::format("sequence: {}\nstart: {}\nend: {}\nquery: {}\ncontent-type: {}\n", parcel.sequence,
                      parcel.start.count(), parcel.end.count(), one_line(parcel.query),
                      one_line(parcel.content_type));
  for (const auto& [name, value] : parcel.headers)
    file += fmt::format("header: {}: {}\n", one_line(name), one_line(value));
  file += fmt::format("body-bytes: {}\nbody-checksum: {}\n", parcel.body.size(), checksum(parcel.body));
  file += fmt::format("{}: {}\n", kLastField, checksum(file));
  return file + parcel.body;
}

Result<Parcel> read_parcel(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kFirstLine)) return cut("does not begin like one");
  HeadReader reader(text.substr(0, kMostHeadBytes));
  HeadFields head;
  auto field = reader.next();
  for (; field && field->name != kLastField; field = reader.next())
    if (!take_field(*field, head)) return cut("a field that makes no sense");
  if (!field) return cut("no end of its head");
  if (number_of<std::uint32_t>(field->value) != checksum(reader.before())) return cut("its head was changed");
  const std::string_view body = text.substr(reader.position());
  if (head.body_bytes != body.size()) return cut("not all of it is there");
  if (head.body_checksum != checksum(body)) return cut("its body was changed");
  head.parcel.body = body;
  return std::move(head.parcel);
}

}  // namespace ddprof
