#pragma once

#include <protozero/pbf_writer.hpp>
#include <span>
#include <string_view>

#include "encode/otlp.hpp"
#include "encode/otlp_attribute.hpp"

namespace ddprof {

// Where samples come from: what is known of all, and what their labels say about their process, which wins,
// and what that process says of itself: `identity` is its position in OtlpResource::of_process.
void write_otlp_resource(protozero::pbf_writer& message, const OtlpResource& resource,
                         std::span<const OtlpAttribute> process, std::uint32_t identity);

// Who measured: ddprof. `columns` are those of its profiles; with them and the name of the default column a
// reader can put the profiles back together.
void write_otlp_scope(protozero::pbf_writer& message, OtlpNumbers columns, std::string_view default_column);

}  // namespace ddprof
