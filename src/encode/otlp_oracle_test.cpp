#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "encode/otlp.hpp"
#include "encode/profile_fixture.hpp"

// What we write, read by protobuf's own compiler with a schema of its own. What a real recording becomes is
// compared in tests/system/test_formats.py, part by part.

namespace ddprof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

struct CloseProtoc {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

class Protoc : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v protoc >/dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is not installed";
    std::string name = testing::TempDir() + "ddprof_protoc_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // protoc's text, without the spaces at the beginning of lines.
  std::string decoded(const Profile& profile, const OtlpResource& resource = {}) {
    const std::string path = folder_ / "request";
    std::ofstream(path, std::ios::binary) << encode_otlp(profile, resource);
    const std::string command =
        "protoc --proto_path=" DDPROF_SOURCE_DIR
        "/tests/formats --decode=otlp.ExportProfilesServiceRequest otlp_profiles.proto <" +
        path + " 2>&1";
    const std::unique_ptr<std::FILE, CloseProtoc> pipe(popen(command.c_str(), "r"));
    std::string text;
    for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;) {
      const bool is_indentation = letter == ' ' && (text.empty() || text.back() == '\n');
      if (!is_indentation) text += static_cast<char>(letter);
    }
    return text;
  }

  std::filesystem::path folder_;
};

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The messages of this name, each as the text between its braces.
std::vector<std::string> messages(const std::string& text, const std::string& name) {
  std::vector<std::string> found;
  const std::string begin = "\n" + name + " {\n";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    std::size_t end = at + begin.size();
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
    found.push_back(text.substr(at + begin.size(), end - at - begin.size() - 1));
  }
  return found;
}

std::string text_attribute(const std::string& key, const std::string& value) {
  return "key: \"" + key + "\"\nvalue {\nstring_value: \"" + value + "\"\n}\n";
}

TEST_F(Protoc, SeesWhereAProfileComesFrom) {
  const OtlpResource resource{.service_name = "shop",
                              .service_version = "1.2",
                              .service_instance_id = "3f-1",
                              .environment = "prod",
                              .host_name = "host",
                              .container_id = "0123",
                              .pid = 42,
                              .executable_path = "/usr/bin/app",
                              .executable_name = "replaced by the label",
                              .attributes = {{"team", "a"}, {"host.name", "other"}}};
  const std::string text = decoded(testing_data::sample_profile(), resource);
  EXPECT_THAT(messages(text, "attributes"),
              IsSupersetOf({text_attribute("service.name", "shop"), text_attribute("service.version", "1.2"),
                            text_attribute("service.instance.id", "3f-1"),
                            text_attribute("deployment.environment.name", "prod"),
                            text_attribute("host.name", "other"), text_attribute("container.id", "0123"),
                            text_attribute("process.executable.path", "/usr/bin/app"),
                            text_attribute("process.executable.name", "app"), text_attribute("team", "a"),
                            text_attribute("telemetry.sdk.name", "ddprof"),
                            text_attribute("pprof.scope.default_sample_type", "cpu"),
                            std::string("key: \"process.pid\"\nvalue {\nint_value: 42\n}\n")}));
  EXPECT_EQ(count(text, "host.name"), 1);
  EXPECT_EQ(count(text, "process.executable.name"), 1);
  EXPECT_THAT(text, HasSubstr("name: \"ddprof\"\nversion: \"" DDPROF_VERSION "\"\n"));
}

TEST_F(Protoc, SeesAProfileForEachColumn) {
  const std::vector<std::string> profiles = messages(decoded(testing_data::sample_profile()), "profiles");
  ASSERT_EQ(profiles.size(), 2);
  EXPECT_THAT(profiles[0],
              AllOf(HasSubstr("values: 200\n"), HasSubstr("values: 100\n"), Not(HasSubstr("000000\n}"))));
  EXPECT_THAT(profiles[1], AllOf(HasSubstr("values: 2000000000\n"), HasSubstr("values: 1000000000\n")));
  for (const std::string& profile : profiles) {
    EXPECT_THAT(profile, AllOf(HasSubstr("time_unix_nano: 1700000000000000000\n"),
                               HasSubstr("duration_nano: 4000000000\n"), HasSubstr("period: 10000000\n")));
  }
}

class ProtocTimes : public Protoc {
 protected:
  ProtocTimes() {
    builder_.profile().value_types = {builder_.value_type("samples", "count"),
                                      builder_.value_type("cpu", "nanoseconds")};
    location_ = builder_.add_named_location("main");
  }

  void add(std::int64_t count, std::int64_t time) {
    ProfileSample sample{{location_}, {count, count * 10}, {}};
    if (time != 0) sample.labels = {builder_.number_label(kEndTimestampLabel, time, "nanoseconds")};
    builder_.add_sample(std::move(sample));
  }

  std::vector<std::string> samples() { return messages(decoded(std::move(builder_).build()), "samples"); }

  ProfileBuilder builder_;
  std::uint32_t location_ = 0;
};

TEST_F(ProtocTimes, CountOneEachWithoutAValue) {
  add(1, 1002);
  add(1, 1001);
  EXPECT_THAT(samples(),
              ElementsAre("stack_index: 1\ntimestamps_unix_nano: 1001\ntimestamps_unix_nano: 1002\n",
                          "stack_index: 1\nvalues: 10\nvalues: 10\n"
                          "timestamps_unix_nano: 1001\ntimestamps_unix_nano: 1002\n"));
}

TEST_F(ProtocTimes, HaveAValueEachWhereOneIsNotOne) {
  add(1, 1001);
  add(3, 1002);
  EXPECT_THAT(samples(), ElementsAre("stack_index: 1\nvalues: 1\nvalues: 3\n"
                                     "timestamps_unix_nano: 1001\ntimestamps_unix_nano: 1002\n",
                                     "stack_index: 1\nvalues: 10\nvalues: 30\n"
                                     "timestamps_unix_nano: 1001\ntimestamps_unix_nano: 1002\n"));
}

TEST_F(ProtocTimes, AreApartFromSumsWithoutATime) {
  add(1, 1001);
  add(4, 0);
  add(5, 0);
  add(0, 1003);  // says nothing
  EXPECT_THAT(samples(),
              ElementsAre("stack_index: 1\nvalues: 9\n", "stack_index: 1\ntimestamps_unix_nano: 1001\n",
                          "stack_index: 1\nvalues: 90\n",
                          "stack_index: 1\nvalues: 10\ntimestamps_unix_nano: 1001\n"));
}

TEST_F(Protoc, SeesEqualThingsOnceAndNothingThatIsNotUsed) {
  Profile profile;
  profile.strings = {"",     "samples", "count", "main", "main",  "unused",
                     "/app", "/app",    "key",   "key",  "value", "value"};
  profile.value_types = {{1, 2}};
  profile.mappings = {{.start = {16}, .path = 6}, {.start = {16}, .path = 7}, {.path = 5}};
  profile.functions = {{.name = 3}, {.name = 4}, {.name = 5}};
  profile.locations = {{0, {17}, {{0, 1}}}, {1, {17}, {{1, 1}}}, {2, {17}, {{2, 1}}}};
  profile.samples = {{{0, 1}, {1}, {{.key = 8, .text = 10}}},
                     {{1, 0}, {2}, {{.key = 9, .text = 11}}},
                     {{2}, {0}, {{.key = 5, .number = 7}}}};
  const std::string text = decoded(profile);
  EXPECT_THAT(messages(text, "samples"), ElementsAre("stack_index: 1\nattribute_indices: 2\nvalues: 3\n"));
  for (const char* table : {"mapping_table {", "location_table {", "function_table {", "stack_table {"})
    EXPECT_EQ(count(text, table), 2) << table;
  EXPECT_EQ(count(text, "attribute_table {"), 3);  // zero, the type of the frame, the label
  EXPECT_EQ(count(text, "string_table: \"main\""), 1);
  EXPECT_EQ(count(text, "string_table: \"/app\""), 1);
  EXPECT_THAT(text, Not(HasSubstr("unused")));
}

TEST_F(Protoc, SeesALocationOfWhichNothingIsKnown) {
  Profile profile;
  profile.strings = {"", "samples", "count"};
  profile.value_types = {{1, 2}};
  profile.locations = {{}};
  profile.samples = {{{0}, {1}, {}}, {{}, {2}, {}}};
  const std::string text = decoded(profile);
  EXPECT_THAT(messages(text, "samples"), ElementsAre("values: 2\n", "stack_index: 1\nvalues: 1\n"));
  EXPECT_EQ(count(text, "location_table {"), 2);
}

TEST_F(Protoc, SeesTextInUtf8) {
  Profile profile = testing_data::sample_profile();
  profile.strings[profile.functions[0].name] = "caf\xe9";
  EXPECT_THAT(decoded(profile),
              AllOf(HasSubstr("string_table: \"caf\\357\\277\\275\""), Not(HasSubstr("UTF-8"))));
}

TEST_F(Protoc, SeesTheZeroElementsOfAProfileWithoutSamples) {
  const std::string text = decoded(Profile());
  EXPECT_THAT(text, Not(HasSubstr("resource_profiles")));
  for (const char* table : {"mapping_table {", "location_table {", "function_table {", "stack_table {",
                            "attribute_table {", "link_table {", "string_table: \"\""})
    EXPECT_EQ(count(text, table), 1) << table;
}

TEST_F(Protoc, SeesAResourceForEachProcess) {
  const std::string text = decoded(testing_data::RichProfile().build());
  EXPECT_EQ(count(text, "resource_profiles {"), 2);
  EXPECT_EQ(count(text, "key: \"process.pid\"\nvalue {\nint_value: 100\n"), 1);
  EXPECT_EQ(count(text, "key: \"process.pid\"\nvalue {\nint_value: 200\n"), 1);
}

}  // namespace
}  // namespace ddprof
