#include "export/spool.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>

#include "base/clock.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kFirstLine = "ddprof parcel 1\n";  // spools outlive versions
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

Error cut(std::string_view what) { return make_error(ErrorCode::corrupt, "spooled request: {}", what); }

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
  UploadRequest request;
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
  UploadRequest& request = head.request;
  const auto [name, value] = field;
  if (name == "sequence") {
    const auto sequence = number_of<std::uint64_t>(value);
    request.sequence = sequence.value_or(0);
    return sequence.has_value();
  }
  if (name == "start") return take_time(request.start, value);
  if (name == "end") return take_time(request.end, value);
  if (name == "query") request.query = value;
  if (name == "content-type") request.content_type = value;
  if (name == "body-bytes") return (head.body_bytes = number_of<std::uint64_t>(value)).has_value();
  if (name == "body-checksum") return (head.body_checksum = number_of<std::uint32_t>(value)).has_value();
  if (name != "header") return true;
  const std::size_t colon = value.find(": ");
  if (colon == std::string_view::npos || request.headers.size() >= kMostHeaders) return false;
  request.headers.emplace_back(value.substr(0, colon), value.substr(colon + 2));
  return true;
}

}  // namespace

std::string write_request(const UploadRequest& request) {
  std::string file(kFirstLine);
  file += fmt::format("sequence: {}\nstart: {}\nend: {}\nquery: {}\ncontent-type: {}\n", request.sequence,
                      request.start.count(), request.end.count(), one_line(request.query),
                      one_line(request.content_type));
  for (const auto& [name, value] : request.headers)
    file += fmt::format("header: {}: {}\n", one_line(name), one_line(value));
  file += fmt::format("body-bytes: {}\nbody-checksum: {}\n", request.body.size(), checksum(request.body));
  file += fmt::format("{}: {}\n", kLastField, checksum(file));
  return file + request.body;
}

Result<UploadRequest> read_request(std::span<const std::byte> file) {
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
  head.request.body = body;
  return std::move(head.request);
}

namespace {

constexpr std::string_view kRequestSuffix = ".parcel";
constexpr std::string_view kAddingLock = "adding.lock";
constexpr std::size_t kStampDigits = 20;

bool is_unfinished(const PrivateFile& file) { return file.name.starts_with('.'); }

bool is_request(const PrivateFile& file) {
  return file.name.ends_with(kRequestSuffix) && !is_unfinished(file);
}

std::uint64_t stamp_of(std::string_view name) {
  std::uint64_t stamp = 0;
  const std::string_view digits = name.substr(0, kStampDigits);
  std::from_chars(digits.data(), digits.data() + digits.size(), stamp);
  return stamp;
}

// Names sort in the order of adding: by the time of it, but never before what is there, so that a clock that
// is set back changes nothing. The number at the end tells those of several processes apart, whose PIDs may
// be the same in two containers.
std::string name_behind(const std::vector<PrivateFile>& requests) {
  auto stamp = static_cast<std::uint64_t>(std::max<std::int64_t>(unix_now().count(), 1));
  if (!requests.empty()) stamp = std::max(stamp, stamp_of(requests.back().name) + 1);
  return fmt::format("{:0{}}-{:08x}{}", stamp, kStampDigits, std::random_device{}(), kRequestSuffix);
}

}  // namespace

Spool::Spool(std::string path, PrivateFolder folder, SpoolLimits limits)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      limits_(limits),
      unix_at_boot_(unix_now() - read_clock(CLOCK_BOOTTIME)) {}

Result<Spool> Spool::open(const std::string& folder, SpoolLimits limits) {
  Spool spool(folder, TRY(PrivateFolder::open(folder)), limits);
  std::ignore = spool.turn_to_add();  // there before the disk is full
  return spool;
}

void Spool::drop_outdated_beside() {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (fs::directory_iterator at(fs::path(path_).parent_path(), failed), end; !failed && at != end;
       at.increment(failed)) {
    if (!fs::exists(at->path() / kAddingLock, failed)) continue;  // not a spool
    const auto neighbour = PrivateFolder::open(at->path().string());
    if (!neighbour) continue;
    for (const PrivateFile& file : neighbour->files())
      if (is_request(file) && is_too_old(file) && neighbour->remove(file.name)) dropped_++;
  }
}

std::vector<PrivateFile> Spool::files() const {
  std::vector<PrivateFile> files = folder_.files();
  std::sort(files.begin(), files.end(),
            [](const PrivateFile& left, const PrivateFile& right) { return left.name < right.name; });
  return files;
}

std::vector<PrivateFile> Spool::requests() const {
  std::vector<PrivateFile> requests = files();
  std::erase_if(requests, [](const PrivateFile& file) { return !is_request(file); });
  return requests;
}

void Spool::drop(const std::string& name) {
  if (folder_.remove(name)) dropped_++;
}

// By the clock as it is and as it would be had it not been set since the spool was opened: a machine that
// learns the time late, or wakes up, does not lose what it has just kept.
bool Spool::is_older(const PrivateFile& file, Nanoseconds age) const {
  const Nanoseconds now = std::min(unix_now(), unix_at_boot_ + read_clock(CLOCK_BOOTTIME));
  return file.written < now - age;
}

// Unfinished files were begun by processes that crashed.
bool Spool::is_too_old(const PrivateFile& file) const {
  constexpr Nanoseconds kLongestWrite = std::chrono::minutes(10);
  return is_older(file, is_request(file) ? limits_.age : kLongestWrite);
}

std::vector<PrivateFile> Spool::make_room(const std::vector<PrivateFile>& files, std::uint64_t wanted) {
  std::vector<PrivateFile> left;
  std::uint64_t bytes = wanted;
  for (const PrivateFile& file : files) bytes += file.bytes;
  for (const PrivateFile& file : files) {
    if (!is_request(file) && !is_unfinished(file)) continue;
    const bool is_in_the_way = is_request(file) && bytes > limits_.bytes;
    if (is_in_the_way || is_too_old(file)) {
      if (folder_.remove(file.name) && is_request(file)) dropped_++;
      bytes -= file.bytes;
    } else if (is_request(file)) {
      left.push_back(file);
    }
  }
  return left;
}

// Without a turn, two who add at once could together take more than there is.
UniqueFd Spool::turn_to_add() const {
  constexpr std::chrono::milliseconds kPatience(500);  // a stopped process does not stop others
  return folder_.lock(std::string(kAddingLock), kPatience);
}

Result<std::string> Spool::add(const UploadRequest& request) {
  const std::string content = write_request(request);
  if (content.size() > limits_.bytes)
    return make_error(ErrorCode::exhausted, "a profile of {} KiB is more than {} may hold",
                      content.size() >> 10U, path_);
  if (!folder_.is_linked()) folder_ = TRY(PrivateFolder::open(path_));  // it was removed meanwhile
  const UniqueFd turn = turn_to_add();
  std::string name = name_behind(make_room(files(), content.size()));
  const auto written = folder_.write_durably(name, std::as_bytes(std::span(content)));
  if (written) return name;
  // The same trouble has the same words.
  const std::string& why = written.error().message;
  return make_error(written.error().code, "write to {}{}", path_,
                    why.substr(std::min(why.find(": "), why.size())));
}

Result<void> Spool::deliver(const Attempt& attempt) {
  // What was delivered and cannot be removed would be delivered again and again.
  if (!folder_.is_writable()) return {};
  const UniqueFd lock = folder_.try_lock();
  if (!lock.is_open()) return {};
  std::optional<Error> unreadable;
  for (const PrivateFile& file : make_room(files(), 0)) {
    const auto content = folder_.read_copy(file.name, limits_.bytes);
    if (!content && content.error().code == ErrorCode::not_found) continue;   // another process made room
    if (!content && content.error().code == ErrorCode::exhausted) return {};  // no descriptors, no memory
    if (!content && content.error().code != ErrorCode::corrupt) {
      // A disk that fails now may be read again later.
      if (!unreadable) unreadable = content.error();
      continue;
    }
    const auto request =
        content ? read_request(std::as_bytes(std::span(*content))) : Result<UploadRequest>(content.error());
    const Fate fate = request ? attempt(file.name, *request) : Fate::refused;
    if (fate == Fate::waits) break;
    if (fate == Fate::refused) drop(file.name);
    if (fate == Fate::delivered) std::ignore = folder_.remove(file.name);
  }
  return unreadable ? Result<void>(*std::move(unreadable)) : Result<void>();
}

bool Spool::is_empty() const { return !folder_.has_file(kRequestSuffix); }

Spool::State Spool::state() const {
  State state{.requests = 0, .bytes = 0, .dropped = dropped_};
  for (const PrivateFile& file : requests()) {
    state.requests++;
    state.bytes += file.bytes;
  }
  return state;
}

}  // namespace ddprof
