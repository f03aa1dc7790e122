#pragma once

#include <cstddef>
#include <protozero/pbf_writer.hpp>

#include "encode/otlp_attribute.hpp"
#include "encode/otlp_dictionary.hpp"

namespace ddprof {

// Writes the dictionary of a request: everything that was numbered until now.
void write_otlp_tables(protozero::pbf_writer& request, const OtlpDictionary& dictionary);

// About as many bytes as the tables take, rather more than less.
std::size_t otlp_tables_bytes(const OtlpDictionary& dictionary);

// The AnyValue of an attribute, as that field of a message.
void write_otlp_value(protozero::pbf_writer& message, std::uint32_t number, const OtlpValue& value);

// A text as protobuf wants it: in UTF-8.
void write_otlp_text(protozero::pbf_writer& message, std::uint32_t number, std::string_view text);

}  // namespace ddprof
