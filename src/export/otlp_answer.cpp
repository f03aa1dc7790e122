#include "export/otlp_answer.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "encode/proto/otlp_fields.hpp"
#include "encode/proto/wire_reader.hpp"
#include "encode/utf8.hpp"

namespace ddprof {

namespace {

struct PartialSuccess {
  std::int64_t rejected_profiles = 0;
  std::string_view message;
};

// Nothing when it is no protobuf.
std::optional<PartialSuccess> read_partial_success(std::string_view bytes) {
  PartialSuccess found;
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() == otlp_field::kRejectedProfiles) {
      found.rejected_profiles = static_cast<std::int64_t>(reader.varint());
    } else if (reader.field() == otlp_field::kErrorMessage) {
      found.message = reader.bytes();
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? std::nullopt : std::optional(found);
}

std::optional<PartialSuccess> read_answer(std::string_view bytes) {
  std::optional<PartialSuccess> found = PartialSuccess{};
  WireReader reader(bytes);
  while (found && reader.next()) {
    if (reader.field() == otlp_field::kPartialSuccess) {
      found = read_partial_success(reader.bytes());
    } else {
      reader.skip();
    }
  }
  return reader.is_failed() ? std::nullopt : found;
}

}  // namespace

std::string otlp_objection(std::string_view answer) {
  const std::optional<PartialSuccess> success = read_answer(answer);
  // A web page, for example: whoever it was, it need not have kept anything.
  if (!success) return "what it says is not the answer of a collector, or too long for one";
  const std::string message = to_utf8(success->message);
  if (success->rejected_profiles == 0) return message;
  return fmt::format("rejects {} of the profiles{}{}", success->rejected_profiles,
                     message.empty() ? "" : ": ", message);
}

}  // namespace ddprof
