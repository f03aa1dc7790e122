#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// A parsed JSON text. Boost.JSON throws when memory runs out; that stays in here.
class JsonDocument {
 public:
  // `memory_bytes` bounds the values that a text may become.
  static Result<JsonDocument> parse(std::string_view text, std::size_t memory_bytes);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  // The outermost object; a text that is anything else has not been parsed.
  [[nodiscard]] const boost::json::object& root() const;

 private:
  struct Content;
  explicit JsonDocument(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content_;
};

// Members by key: what is missing or of another type is absent, empty or null.
[[nodiscard]] const boost::json::object* json_object(const boost::json::object& parent, std::string_view key);
[[nodiscard]] const boost::json::array* json_array(const boost::json::object& parent, std::string_view key);
[[nodiscard]] std::string_view json_text(const boost::json::object& parent, std::string_view key);
[[nodiscard]] std::optional<double> json_number(const boost::json::object& parent, std::string_view key);

[[nodiscard]] std::string_view json_text(const boost::json::value& value);
[[nodiscard]] std::optional<double> json_number(const boost::json::value& value);
// Whole numbers only, and only those that fit.
[[nodiscard]] std::optional<std::int64_t> json_integer(const boost::json::value& value);

// The nearest whole number, at the limits for what is beyond them.
[[nodiscard]] std::int64_t rounded(double number);

}  // namespace ddprof
