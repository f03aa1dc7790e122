#include "import/json_document.hpp"

#include <boost/json/src.hpp>  // the one place that compiles Boost.JSON
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "import/sample_merger.hpp"

namespace ddprof {

namespace {

namespace json = boost::json;

constexpr std::size_t kFirstBlock = std::size_t{64} << 10;

class LimitedMemory final : public json::memory_resource {
 public:
  explicit LimitedMemory(std::size_t bytes) : budget_(bytes) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!budget_.take(bytes)) throw std::bad_alloc();  // caught where the text is parsed
    return ::operator new (bytes, std::align_val_t{alignment});
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    budget_.give_back(bytes);
    ::operator delete (memory, std::align_val_t{alignment});
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  MemoryBudget budget_;
};

}  // namespace

struct JsonDocument::Content {
  explicit Content(std::size_t memory_bytes)
      : memory(memory_bytes), pool(kFirstBlock, &memory), value(&pool) {}

  LimitedMemory memory;
  json::monotonic_resource pool;  // freed at once
  json::value value;
};

JsonDocument::JsonDocument(std::unique_ptr<Content> content) : content_(std::move(content)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

const json::object& JsonDocument::root() const { return *content_->value.if_object(); }

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::size_t memory_bytes) {
  try {
    auto content = std::make_unique<Content>(memory_bytes);
    json::error_code error;
    json::parser parser(&content->memory);
    parser.reset(&content->pool);
    const std::size_t read = parser.write_some(text.data(), text.size(), error);
    if (!error && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos)
      return make_error(ErrorCode::corrupt, "read JSON: more text behind its end, at byte {}", read);
    if (error) return make_error(ErrorCode::corrupt, "read JSON: {} at byte {}", error.message(), read);
    content->value = parser.release();
    if (content->value.if_object() == nullptr)
      return make_error(ErrorCode::corrupt, "read JSON: not an object");
    return JsonDocument(std::move(content));
  } catch (const std::exception&) {
    return make_error(ErrorCode::exhausted, "read JSON: it needs more than {} bytes of memory", memory_bytes);
  }
}

const json::object* json_object(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

const json::array* json_array(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  return value != nullptr ? value->if_array() : nullptr;
}

std::string_view json_text(const json::value& value) {
  const json::string* text = value.if_string();
  return text != nullptr ? std::string_view(text->data(), text->size()) : std::string_view();
}

std::string_view json_text(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  return value != nullptr ? json_text(*value) : std::string_view();
}

std::optional<double> json_number(const json::value& value) {
  if (const std::int64_t* whole = value.if_int64()) return static_cast<double>(*whole);
  if (const std::uint64_t* large = value.if_uint64()) return static_cast<double>(*large);
  if (const double* number = value.if_double(); number != nullptr && std::isfinite(*number)) return *number;
  return std::nullopt;
}

std::optional<double> json_number(const json::object& parent, std::string_view key) {
  const json::value* value = parent.if_contains(key);
  return value != nullptr ? json_number(*value) : std::nullopt;
}

std::optional<std::int64_t> json_integer(const json::value& value) {
  if (const std::int64_t* whole = value.if_int64()) return *whole;
  const double* number = value.if_double();
  // JSON has one kind of number: 3.0 and 3e0 are 3.
  if (number == nullptr || *number != std::floor(*number) || std::abs(*number) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::int64_t rounded(double number) {
  if (std::isnan(number)) return 0;
  if (number >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (number < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return std::llround(number);
}

}  // namespace ddprof
