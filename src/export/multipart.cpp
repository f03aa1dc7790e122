#include "export/multipart.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ddprof {

namespace {

std::string choose_boundary(std::span<const FormFile> files, const std::function<std::uint64_t()>& random) {
  while (true) {
    const std::uint64_t high = random();
    const std::uint64_t low = random();
    std::string boundary = fmt::format("ddprof-{:016x}{:016x}", high, low);
    const bool occurs = std::any_of(files.begin(), files.end(), [&](const FormFile& file) {
      return file.content.find(boundary) != std::string::npos;
    });
    if (!occurs) return boundary;
  }
}

}  // namespace

MultipartForm make_form(std::span<const FormFile> files, const std::function<std::uint64_t()>& random) {
  const std::string boundary = choose_boundary(files, random);
  MultipartForm form{"multipart/form-data; boundary=" + boundary, ""};
  for (const FormFile& file : files) {
    form.bytes += fmt::format("--{}\r\nContent-Disposition: form-data; name=\"{}\"", boundary, file.field);
    if (!file.name.empty())
      form.bytes += fmt::format("; filename=\"{}\"\r\nContent-Type: {}", file.name, file.content_type);
    form.bytes += "\r\n\r\n";
    form.bytes += file.content;
    form.bytes += "\r\n";
  }
  form.bytes += fmt::format("--{}--\r\n", boundary);
  return form;
}

}  // namespace ddprof
