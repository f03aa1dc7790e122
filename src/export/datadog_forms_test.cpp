#include "export/datadog_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr DatadogEvent kMinute{.start = Nanoseconds(1'714'564'800'900'000'000),
                               .end = Nanoseconds(1'714'564'860'100'000'000)};

std::string form_of(IntakeFormat format) {
  std::vector<Attachment> attachments = {{"cpu.pprof", "CPU", "cpu-time,cpu-samples"},
                                         {"heap.pprof", "HEAP", "inuse-space"}};
  return datadog_form(format, {.service = "shop", .tags = "team:a"}, kMinute, std::move(attachments),
                      [] { return 7; })
      .bytes;
}

std::string field(const std::string& name, const std::string& value) {
  return "form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n--";
}

std::string file(const std::string& name, const std::string& value) {
  return "form-data; name=\"" + name +
         "\"; filename=\"pprof-data\"\r\nContent-Type: application/octet-stream\r\n\r\n" + value + "\r\n--";
}

TEST(DatadogForms, TheFirstGenerationNumbersItsProfiles) {
  const std::string form = form_of(IntakeFormat::form);
  for (const auto& [name, value] :
       {std::pair("format", "pprof"), std::pair("runtime", "native"),
        std::pair("recording-start", "2024-05-01T12:00:00Z"),
        std::pair("recording-end", "2024-05-01T12:01:00Z"), std::pair("tags[]", "service:shop"),
        std::pair("tags[]", "team:a"), std::pair("types[0]", "cpu-time,cpu-samples"),
        std::pair("types[1]", "inuse-space")})
    EXPECT_THAT(form, HasSubstr(field(name, value)));
  EXPECT_THAT(form, HasSubstr(file("data[0]", "CPU")));
  EXPECT_THAT(form, HasSubstr(file("data[1]", "HEAP")));
  EXPECT_THAT(form, Not(HasSubstr("name=\"version\"")));
}

TEST(DatadogForms, TheThirdNamesThem) {
  const std::string form = form_of(IntakeFormat::version_3);
  for (const auto& [name, value] :
       {std::pair("version", "3"), std::pair("family", "native"), std::pair("start", "2024-05-01T12:00:00Z"),
        std::pair("end", "2024-05-01T12:01:00Z"), std::pair("tags[]", "service:shop")})
    EXPECT_THAT(form, HasSubstr(field(name, value)));
  EXPECT_THAT(form, HasSubstr(file("data[cpu.pprof]", "CPU")));
  EXPECT_THAT(form, HasSubstr(file("data[heap.pprof]", "HEAP")));
  EXPECT_THAT(form, Not(HasSubstr("types[")));
}

}  // namespace
}  // namespace ddprof
