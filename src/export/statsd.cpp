#include "export/statsd.hpp"

#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/call_within.hpp"

namespace ddprof {

// The answer of getaddrinfo(), which may take half a minute and cannot be cancelled.
struct StatsdSocket::LookUp {
  std::mutex mutex;
  std::optional<Result<SocketEndpoint>> answer;
};

StatsdSocket::StatsdSocket(StatsdAddress address) : address_(std::move(address)) {
  if (address_.is_unix()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address_.path.data(),
                std::min(address_.path.size(), sizeof name.sun_path - 1));
    endpoint_.emplace();
    std::memcpy(&endpoint_->bytes, &name, sizeof name);
    endpoint_->size = sizeof name;
  } else if (auto numeric = look_up(address_, AI_NUMERICHOST)) {
    endpoint_ = *numeric;
  } else {
    start_look_up();
  }
}

Result<SocketEndpoint> StatsdSocket::look_up(const StatsdAddress& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (status != 0)
    return make_error(ErrorCode::not_found, "look up {}: {}", address.host, ::gai_strerror(status));
  SocketEndpoint endpoint;
  endpoint.size = std::min<socklen_t>(list->ai_addrlen, sizeof endpoint.bytes);
  std::memcpy(&endpoint.bytes, list->ai_addr, endpoint.size);
  ::freeaddrinfo(list);
  return endpoint;
}

void StatsdSocket::start_look_up() {
  auto shared = std::make_shared<LookUp>();
  std::thread thread = start_quiet_thread([shared, address = address_] {
    Result<SocketEndpoint> answer = look_up(address, 0);
    std::lock_guard lock(shared->mutex);
    shared->answer.emplace(std::move(answer));
  });
  if (!thread.joinable()) return;
  thread.detach();
  look_up_ = std::move(shared);
}

// An answer that is not there yet, or a bad one, is asked for again when there is something else to send.
Result<void> StatsdSocket::find_endpoint() {
  if (!look_up_) start_look_up();
  if (!look_up_) return make_error(ErrorCode::exhausted, "look up {}: no thread for it", address_.host);
  std::unique_lock lock(look_up_->mutex);
  if (!look_up_->answer) return make_error(ErrorCode::failed, "look up {}: no answer yet", address_.host);
  Result<SocketEndpoint> answer = *look_up_->answer;
  lock.unlock();
  look_up_.reset();
  endpoint_ = TRY(std::move(answer));
  return {};
}

Result<void> StatsdSocket::connect() {
  if (!endpoint_) TRY(find_endpoint());
  UniqueFd fd(::socket(endpoint_->bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return errno_error(errno, "make a socket for " + address_.text());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&endpoint_->bytes), endpoint_->size) != 0)
    return errno_error(errno, "connect to " + address_.text());
  fd_ = std::move(fd);
  return {};
}

Result<void> StatsdSocket::send(std::string_view datagram) {
  if (!fd_.is_open()) TRY(connect());
  if (::send(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  Error error = errno_error(errno, "send to " + address_.text());
  if (errno == EAGAIN || errno == ENOBUFS) return error;
  // The receiver was started anew; or, with UDP, the last datagram came back: it is lost, this one may
  // arrive.
  fd_.reset();
  auto again = reconnect_and_send(datagram);
  if (again && !address_.is_unix()) return error;
  return again;
}

Result<void> StatsdSocket::reconnect_and_send(std::string_view datagram) {
  TRY(connect());
  if (::send(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  Error error = errno_error(errno, "send to " + address_.text());
  fd_.reset();
  return error;
}

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
