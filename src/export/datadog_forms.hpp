#pragma once

#include "export/datadog_body.hpp"

namespace ddprof {

// What Datadog's receivers take: three generations, of which the first has no version.
enum class IntakeFormat : std::uint8_t { version_4, version_3, form };

// A body of the two older generations, in which the metadata are fields of the form.
MultipartForm datadog_form(IntakeFormat format, const DatadogIdentity& identity, const DatadogEvent& event,
                           std::vector<Attachment> attachments, const std::function<std::uint64_t()>& random);

}  // namespace ddprof
