#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace ddprof {

// One field of a form: a plain value, or a file.
struct FormFile {
  std::string field;
  std::string name;  // of the file; empty: a plain value, which has no content type either
  std::string content_type;
  std::string content;
};

struct MultipartForm {
  std::string content_type;  // with the boundary
  std::string bytes;
};

// The fields as multipart/form-data (RFC 7578), in this order. The boundary comes from `random`, which is
// asked again should it occur in a file. Fields and names are ours: they need no escaping.
MultipartForm make_form(std::span<const FormFile> files, const std::function<std::uint64_t()>& random);

}  // namespace ddprof
