#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace ddprof {

// One file of a form.
struct FormFile {
  std::string field;
  std::string name;
  std::string content_type;
  std::string content;
};

struct MultipartForm {
  std::string content_type;  // with the boundary
  std::string bytes;
};

// The files as multipart/form-data (RFC 7578). The boundary comes from `random`, which is asked again should
// it occur in a file. Fields and names are ours: they need no escaping.
MultipartForm make_form(std::span<const FormFile> files, const std::function<std::uint64_t()>& random);

}  // namespace ddprof
