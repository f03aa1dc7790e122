#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {

// For tests: profiles from stacks written root first: "main;work". A frame may have a line ("work@app.cc:12")
// and, with
// ">", calls that were inlined into it: "work@app.cc:12>helper@app.h:3".
class ReportFixture {
 public:
  static constexpr std::int64_t kMillisecond = 1'000'000;

  ReportFixture() {
    builder_.profile().value_types = {builder_.value_type("samples", "count"),
                                      builder_.value_type("cpu", "nanoseconds")};
    builder_.profile().default_value_type = builder_.intern("cpu");
    builder_.profile().duration_ns = 2'000'000'000;
    builder_.profile().time_ns = 1'700'000'000'000'000'000;
    app_ =
        builder_.add_mapping({.start = {0x1000}, .limit = {0x9000}, .path = builder_.intern("/usr/bin/app")});
  }

  ReportFixture& add(const std::string& stack, std::int64_t milliseconds, std::int64_t thread = 1,
                     std::string_view process = "app", std::int64_t process_id = 1) {
    std::vector<std::uint32_t> locations;
    for (const std::string& frame : split(stack, ';')) locations.insert(locations.begin(), location(frame));
    builder_.add_sample(
        {locations,
         {milliseconds / 10, milliseconds * kMillisecond},
         {builder_.number_label(kThreadIdLabel, thread), builder_.text_label(kThreadNameLabel, "worker"),
          builder_.number_label(kProcessIdLabel, process_id),
          builder_.text_label(kProcessNameLabel, process)}});
    return *this;
  }

  [[nodiscard]] std::string render(const ReportOptions& options = {}) {
    auto text = render_report(builder_.profile(), options);
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text.ok() ? std::move(text).value() : std::string();
  }
  [[nodiscard]] Error failure(const ReportOptions& options) {
    auto text = render_report(builder_.profile(), options);
    EXPECT_FALSE(text.ok());
    return text.ok() ? Error{} : std::move(text).error();
  }
  ProfileBuilder& builder() { return builder_; }

 private:
  static std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
  }

  std::uint32_t location(const std::string& frame) {
    std::vector<ProfileLine> lines;
    for (const std::string& call : split(frame, '>')) lines.insert(lines.begin(), line(call));
    return builder_.add_location(frame[0] == '[' ? kNoMapping : app_, {0x2000}, lines);
  }

  ProfileLine line(const std::string& call) {
    const std::size_t at = call.find('@'), colon = call.rfind(':');
    if (at == std::string::npos) return {builder_.add_function(call), 0};
    const std::string file = call.substr(at + 1, colon - at - 1);
    return {builder_.add_function(call.substr(0, at), {}, file), std::stoll(call.substr(colon + 1))};
  }

  ProfileBuilder builder_;
  std::uint32_t app_ = 0;
};

// A report from one of its headings on.
inline std::string from_heading(const std::string& text, std::string_view heading) {
  const std::size_t at = text.find(heading);
  return at == std::string::npos ? "" : text.substr(at);
}

inline std::string line_with(const std::string& text, std::string_view needle) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(needle) != std::string::npos) return line;
  }
  return {};
}

}  // namespace ddprof
