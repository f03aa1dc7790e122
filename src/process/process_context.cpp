#include "process/process_context.hpp"

#include <array>
#include <cstring>

#include "process/address_space.hpp"
#include "proto/otlp_fields.hpp"
#include "proto/wire_reader.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kSignature = "OTEL_CTX";
constexpr std::uint32_t kPublishedVersion = 2;
constexpr std::size_t kMostContextAttributes = 256;
constexpr std::string_view kThreadKeys = "threadlocal.attribute_key_map";

Error bad_context(std::string_view what) {
  return make_error(ErrorCode::corrupt, "process context: {}", what);
}

// Fields of the message ProcessContext.
enum ContextField : std::uint32_t { kContextResource = 1, kContextAttributes = 2 };

std::string text_of_value(std::string_view message) {
  WireReader reader(message);
  std::string text;
  while (reader.next()) {
    if (reader.field() == otlp_field::kText) {
      text = reader.bytes();
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? "" : text;
}

// Texts of an array; one that is something else leaves an empty text, so that the others keep their places.
std::vector<std::string> texts_of_array(std::string_view message) {
  std::vector<std::string> texts;
  WireReader reader(message);
  while (reader.next()) {
    if (reader.field() != otlp_field::kArrayValues) {
      reader.skip();
    } else if (texts.size() < kMostContextAttributes) {
      texts.push_back(text_of_value(reader.bytes()));
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? std::vector<std::string>() : texts;
}

std::vector<std::string> texts_of_value(std::string_view message) {
  WireReader reader(message);
  std::vector<std::string> texts;
  while (reader.next()) {
    if (reader.field() == otlp_field::kArray) {
      texts = texts_of_array(reader.bytes());
    } else {
      reader.skip();
    }
  }
  return texts;
}

// One that has another value than a text is passed over. False: not a message at all.
bool add_attribute(std::string_view message, std::map<std::string, std::string>& attributes,
                   std::vector<std::string>& thread_keys) {
  WireReader reader(message);
  std::string key;
  std::string value;
  std::string_view any;
  while (reader.next()) {
    if (reader.field() == otlp_field::kKey) {
      key = reader.bytes();
    } else if (reader.field() == otlp_field::kValue) {
      any = reader.bytes();
      value = text_of_value(any);
    } else {
      reader.skip();
    }
  }
  if (reader.is_failed()) return false;
  if (key == kThreadKeys) thread_keys = texts_of_value(any);
  if (!key.empty() && !value.empty() && attributes.size() < kMostContextAttributes)
    attributes[std::move(key)] = std::move(value);
  return true;
}

bool add_resource(std::string_view message, ProcessContext& context) {
  WireReader reader(message);
  while (reader.next()) {
    if (reader.field() != otlp_field::kResourceAttributes) {
      reader.skip();
    } else if (!add_attribute(reader.bytes(), context.resource, context.thread_keys)) {
      return false;
    }
  }
  return !reader.is_failed();
}

std::optional<ProcessContextHead> read_head(Pid pid, Address at, ForeignMemory& memory) {
  std::array<std::byte, kProcessContextHeadBytes> bytes{};
  if (memory.read(pid, at, bytes) != bytes.size()) return std::nullopt;
  auto head = parse_process_context_head(bytes);
  return head ? std::optional(*head) : std::nullopt;
}

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

std::string ProcessContext::text(const std::string& name) const {
  const auto found = resource.find(name);
  return found != resource.end() ? found->second : "";
}

Result<ProcessContextHead> parse_process_context_head(std::span<const std::byte> bytes) {
  if (bytes.size() < kProcessContextHeadBytes) return bad_context("cut");
  if (std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) != 0)
    return bad_context("no signature");
  if (number_at<std::uint32_t>(bytes, 8) != kPublishedVersion) return bad_context("of another version");
  const ProcessContextHead head{number_at<std::uint32_t>(bytes, 12), number_at<std::uint64_t>(bytes, 16),
                                Address{number_at<std::uint64_t>(bytes, 24)}};
  if (head.published_at == 0) return bad_context("being written");
  if (head.payload_bytes == 0 || head.payload_bytes > kMostProcessContextBytes)
    return bad_context("of a size that cannot be");
  return head;
}

Result<ProcessContext> parse_process_context(std::string_view payload) {
  ProcessContext context;
  WireReader reader(payload);
  while (reader.next()) {
    bool is_good = true;
    if (reader.field() == kContextResource) {
      is_good = add_resource(reader.bytes(), context);
    } else if (reader.field() == kContextAttributes) {
      is_good = add_attribute(reader.bytes(), context.attributes, context.thread_keys);
    } else {
      reader.skip();
    }
    if (!is_good) return bad_context("not a message");
  }
  if (reader.is_failed()) return bad_context("not a message");
  return context;
}

std::optional<Address> find_process_context(std::string_view maps) {
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    const auto line = parse_proc_maps_line(maps.substr(0, end));
    maps.remove_prefix(std::min(end + 1, maps.size()));
    if (!line || line->is_executable) continue;
    for (std::string_view name : {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"})
      if (line->path.starts_with(name)) return line->start;
  }
  return std::nullopt;
}

bool is_still_published(Pid pid, const PublishedContext& known, ForeignMemory& memory) {
  const auto head = read_head(pid, known.at, memory);
  return head && head->published_at == known.published_at;
}

std::optional<PublishedContext> read_published_context(Pid pid, ForeignMemory& memory) {
  const auto maps = memory.read_file(pid, "maps", kMaxMapsBytes);
  const auto at = maps ? find_process_context(*maps) : std::nullopt;
  constexpr int kAttempts = 3;  // it may be updated while we read
  for (int attempt = 0; at && attempt < kAttempts; ++attempt) {
    const auto head = read_head(pid, *at, memory);
    if (!head) return std::nullopt;
    std::string payload(head->payload_bytes, '\0');
    if (memory.read(pid, head->payload, std::as_writable_bytes(std::span(payload))) != payload.size())
      continue;
    const auto again = read_head(pid, *at, memory);
    if (!again || again->published_at != head->published_at) continue;
    auto context = parse_process_context(payload);
    if (!context) return std::nullopt;
    return PublishedContext{*at, head->published_at, std::move(context).value()};
  }
  return std::nullopt;
}

}  // namespace ddprof
