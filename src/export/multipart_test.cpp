#include "export/datadog_body.hpp"

#include <gtest/gtest.h>

#include <array>

namespace ddprof {
namespace {

TEST(Multipart, WritesFilesBetweenBoundaries) {
  std::uint64_t number = 0;
  const std::array files = {FormFile{"event", "event.json", "application/json", "{}"},
                            FormFile{"a", "a.bin", "application/octet-stream", std::string("\0\r\n--", 5)}};
  const MultipartForm form = make_form(files, [&] { return ++number; });
  const std::string boundary = "ddprof-00000000000000010000000000000002";
  EXPECT_EQ(form.content_type, "multipart/form-data; boundary=" + boundary);
  EXPECT_EQ(form.bytes, "--" + boundary +
                            "\r\nContent-Disposition: form-data; name=\"event\"; filename=\"event.json\"\r\n"
                            "Content-Type: application/json\r\n\r\n{}\r\n--" +
                            boundary +
                            "\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.bin\"\r\n"
                            "Content-Type: application/octet-stream\r\n\r\n" +
                            std::string("\0\r\n--", 5) + "\r\n--" + boundary + "--\r\n");
}

TEST(Multipart, WritesPlainValuesWithoutAFileName) {
  const std::array fields = {FormFile{"tags[]", {}, {}, "team:a"}};
  const MultipartForm form = make_form(fields, [] { return 0; });
  const std::string boundary = "ddprof-00000000000000000000000000000000";
  EXPECT_EQ(form.bytes, "--" + boundary +
                            "\r\nContent-Disposition: form-data; name=\"tags[]\"\r\n\r\nteam:a\r\n--" +
                            boundary + "--\r\n");
}

TEST(Multipart, ChoosesABoundaryThatNoFileHas) {
  std::uint64_t number = 0;
  const std::array files = {
      FormFile{"f", "f", "text/plain", "x\r\n--ddprof-00000000000000010000000000000002--"}};
  const MultipartForm form = make_form(files, [&] { return ++number; });
  EXPECT_EQ(form.content_type, "multipart/form-data; boundary=ddprof-00000000000000030000000000000004");
}

}  // namespace
}  // namespace ddprof
