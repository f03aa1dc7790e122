// A batch of two kinds through every destination and every file format, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <protozero/pbf_reader.hpp>

#include "base/scratch_fixture.hpp"
#include "encode/otlp.hpp"
#include "export/datadog_peer.hpp"
#include "export/file_destination.hpp"
#include "export/otlp_peer.hpp"
#include "export/profile_folder.hpp"
#include "export/pyroscope_peer.hpp"
#include "export/upload_destination.hpp"
#include "import/import_profile.hpp"
#include "net/raw_server_fixture.hpp"
#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "proto/otlp_fields.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

using Sums = std::map<std::string, std::int64_t>;  // by "type/unit"

constexpr std::int64_t kStart = 1'714'564'800'000'000'000;
const Sums kAllSums = {
    {"samples/count", 5}, {"cpu/nanoseconds", 50}, {"alloc-samples/count", 3}, {"alloc-space/bytes", 3000}};
const Sums kCpuSums = {{"samples/count", 5}, {"cpu/nanoseconds", 50}};

Profile profile_of(const std::string& count, const std::string& type, const std::string& unit,
                   const std::vector<std::array<std::int64_t, 3>>& processes_and_values) {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.value_types = {builder.value_type(count, "count"), builder.value_type(type, unit)};
  profile.period_type = profile.value_types[1];
  profile.period = 10;
  profile.default_value_type = builder.intern(type);
  profile.time_ns = kStart;
  profile.duration_ns = 60'000'000'000;
  profile.time_label = builder.number_label(kEndTimestampLabel, 0, "nanoseconds");
  profile.comments = {builder.intern("of all"), builder.intern("of " + type)};
  for (const auto& [process, events, value] : processes_and_values) {
    ProfileSample sample{{builder.add_named_location("work"), builder.add_named_location("main")},
                         {events, value},
                         {builder.number_label(kThreadIdLabel, 70 + process),
                          builder.number_label(kProcessIdLabel, 70 + process)}};
    sample.process = static_cast<std::uint32_t>(process);
    sample.times = {kStart + 100 * value, kStart + 200 * value};
    sample.events = static_cast<std::uint32_t>(std::max<std::int64_t>(events, 2));
    builder.add_sample(std::move(sample));
  }
  return std::move(builder).build();
}

// Two services, of which the second allocates nothing, and the host.
Batch two_kinds(std::uint64_t sequence = 0) {
  Batch batch =
      Batch::of(profile_of("samples", "cpu", "nanoseconds", {{1, 2, 20}, {2, 2, 20}, {0, 1, 10}}), sequence);
  batch.parts.push_back(
      {"alloc", profile_of("alloc-samples", "alloc-space", "bytes", {{1, 2, 2000}, {0, 1, 1000}})});
  batch.processes = {{}, {.pid = 71, .service = "shop"}, {.pid = 72, .service = "bank"}};
  return batch;
}

Sums column_sums(const Profile& profile) {
  Sums sums;
  for (const ProfileSample& sample : profile.samples)
    for (std::size_t i = 0; i < profile.value_types.size(); ++i)
      sums[fmt::format("{}/{}", profile.text(profile.value_types[i].type),
                       profile.text(profile.value_types[i].unit))] += sample.values[i];
  return sums;
}

std::string without_zstd(const std::string& bytes) {
  if (!bytes.starts_with("\x28\xb5\x2f\xfd")) return bytes;
  std::string plain(1U << 20U, '\0');
  plain.resize(ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size()));
  return plain;
}

Sums sums_in(const std::string& bytes) {
  const std::string plain = without_zstd(bytes);
  const auto profile = import_profile(std::as_bytes(std::span(plain)));
  EXPECT_TRUE(profile.ok()) << (profile ? "" : profile.error().message);
  return profile ? column_sums(*profile) : Sums();
}

// A server that takes everything, or nothing at first.
class KindReceiver {
 public:
  explicit KindReceiver(std::size_t refusals = 0)
      : server_([this, refusals](const RawServer::Client& client) {
          bodies_.push_back(client.receive_body());
          heads_.push_back(client.request());
          client.send(fmt::format("HTTP/1.1 {} Some\r\nContent-Length: 0\r\n\r\n",
                                  bodies_.size() > refusals ? 200 : 403));
        }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  const std::vector<std::string>& bodies() {
    server_.close();
    return bodies_;
  }
  [[nodiscard]] const std::string& head(std::size_t at) const { return heads_.at(at); }

 private:
  std::vector<std::string> bodies_, heads_;
  RawServer server_;
};

// The parts of a multipart form, by name.
std::map<std::string, std::string> parts_of_form(const std::string& body) {
  std::map<std::string, std::string> parts;
  const std::string boundary = body.substr(0, body.find("\r\n"));
  for (std::size_t at = 0; (at = body.find("name=\"", at)) != std::string::npos;) {
    const std::size_t name = at + 6, content = body.find("\r\n\r\n", at) + 4;
    at = body.find("\r\n" + boundary, content);
    parts[body.substr(name, body.find('"', name) - name)] = body.substr(content, at - content);
  }
  return parts;
}

DatadogOptions datadog_at(const KindReceiver& receiver, bool is_intake, IntakeFormat format) {
  DatadogOptions options{.agent = {.url = receiver.url(), .socket = {}}, .format = format};
  if (is_intake) options.api_key = "0123456789abcdef0123456789abcdef";
  options.identity.service = "host";
  options.new_runtime_id = [] { return std::string("another"); };
  return options;
}

TEST(TwoKinds, AreTwoAttachmentsForDatadog) {
  for (const bool is_intake : {false, true}) {
    for (const auto& [format, cpu, alloc] :
         {std::tuple(IntakeFormat::version_4, "cpu.pprof", "alloc.pprof"),
          std::tuple(IntakeFormat::version_3, "data[cpu.pprof]", "data[alloc.pprof]"),
          std::tuple(IntakeFormat::form, "data[0]", "data[1]")}) {
      KindReceiver receiver;
      UploadDestination destination(datadog_peer(datadog_at(receiver, is_intake, format)), {});
      ASSERT_EQ(destination.send(two_kinds()).value_or(Delivery::waits), Delivery::arrived);
      auto form = parts_of_form(receiver.bodies().at(0));
      EXPECT_EQ(sums_in(form[cpu]), (Sums{{"cpu-samples/count", 5}, {"cpu-time/nanoseconds", 50}}));
      EXPECT_EQ(sums_in(form[alloc]), (Sums{{"alloc-samples/count", 3}, {"alloc-space/bytes", 3000}}));
      if (format == IntakeFormat::version_4) {
        EXPECT_THAT(form["event"], HasSubstr(R"("attachments":["cpu.pprof","alloc.pprof"])"));
      }
      if (format == IntakeFormat::form) {
        EXPECT_EQ(form["types[1]"], "alloc-space,alloc-samples");
      }
    }
  }
}

TEST(TwoKinds, AreSplitByServiceForDatadog) {
  KindReceiver receiver;
  DatadogOptions options = datadog_at(receiver, false, IntakeFormat::version_4);
  options.shares = std::make_shared<HostShares>(HostShares::Detail::process);
  ASSERT_TRUE(UploadDestination(datadog_peer(options), {}).send(two_kinds()).ok());
  ASSERT_EQ(receiver.bodies().size(), 3U);
  auto shop = parts_of_form(receiver.bodies()[0]), bank = parts_of_form(receiver.bodies()[1]),
       host = parts_of_form(receiver.bodies()[2]);
  EXPECT_THAT(shop["event"], HasSubstr("service:shop,"));
  EXPECT_EQ(sums_in(shop["cpu.pprof"])["cpu-time/nanoseconds"], 20);
  EXPECT_EQ(sums_in(shop["alloc.pprof"])["alloc-space/bytes"], 2000);
  EXPECT_THAT(bank["event"], HasSubstr("service:bank,"));
  EXPECT_EQ(sums_in(bank["profile.pprof"])["cpu-time/nanoseconds"], 20);
  EXPECT_THAT(host["event"], HasSubstr("service:host,"));
  EXPECT_EQ(sums_in(host["cpu.pprof"])["cpu-time/nanoseconds"], 10);
  EXPECT_EQ(sums_in(host["alloc.pprof"])["alloc-space/bytes"], 1000);
}

TEST(TwoKinds, AreARequestEachForPyroscope) {
  for (const bool is_split : {false, true}) {
    KindReceiver receiver;
    PyroscopeOptions options{.url = receiver.url(), .application = "host"};
    if (is_split) options.shares = std::make_shared<HostShares>(HostShares::Detail::container);
    ASSERT_TRUE(UploadDestination(pyroscope_peer(options), {}).send(two_kinds()).ok());
    Sums all;
    std::vector<std::string> names;
    for (std::size_t at = 0; at < receiver.bodies().size(); ++at) {
      const Sums sums = sums_in(receiver.bodies()[at]);
      EXPECT_EQ(sums.size(), 2U) << "of one kind";
      for (const auto& [column, sum] : sums) all[column] += sum;
      const std::size_t name = receiver.head(at).find("name=") + 5;
      names.push_back(receiver.head(at).substr(name, receiver.head(at).find("%7B", name) - name));
    }
    EXPECT_EQ(all, (Sums{{"samples/count", 5},
                         {"cpu/nanoseconds", 50},
                         {"alloc_samples/count", 3},
                         {"alloc_space/bytes", 3000}}));
    const std::vector<std::string> split = {"shop", "shop", "bank", "host", "host"}, whole = {"host", "host"};
    EXPECT_EQ(names, is_split ? split : whole);
  }
}

std::vector<std::string> texts_in_otlp(protozero::pbf_reader request) {
  std::vector<std::string> texts;
  while (request.next(otlp_field::kDictionary)) {
    for (protozero::pbf_reader dictionary = request.get_message(); dictionary.next(otlp_field::kStringTable);)
      texts.push_back(dictionary.get_string());
  }
  return texts;
}

void add_otlp_profile(protozero::pbf_reader profile, const std::vector<std::string>& texts, Sums& sums) {
  std::string column;
  while (profile.next()) {
    if (profile.tag() == otlp_field::kSampleType) {
      for (protozero::pbf_reader type = profile.get_message(); type.next();)
        column += (column.empty() ? "" : "/") + texts.at(type.get_uint32());
    } else if (profile.tag() == otlp_field::kSamples) {
      std::int64_t values = 0, times = 0;
      for (protozero::pbf_reader sample = profile.get_message(); sample.next();) {
        if (sample.tag() == otlp_field::kSampleValues) {
          for (const std::int64_t value : sample.get_packed_int64()) values += value;
        } else if (sample.tag() == otlp_field::kSampleTimestamps) {
          times = sample.get_packed_fixed64().size();
        } else {
          sample.skip();
        }
      }
      sums[column] += values != 0 ? values : times;  // a time without a value counts one
    } else {
      profile.skip();
    }
  }
}

Sums sums_in_otlp(const std::string& body) {
  protozero::pbf_reader request(body);
  const std::vector<std::string> texts = texts_in_otlp(request);
  Sums sums;
  while (request.next(otlp_field::kResourceProfiles)) {
    for (protozero::pbf_reader resource = request.get_message(); resource.next(otlp_field::kScopeProfiles);) {
      for (protozero::pbf_reader scope = resource.get_message(); scope.next(otlp_field::kProfiles);)
        add_otlp_profile(scope.get_message(), texts, sums);
    }
  }
  return sums;
}

TEST(TwoKinds, AreARequestEachForACollector) {
  KindReceiver receiver;
  OtlpOptions options{.url = receiver.url(), .is_compressed = false, .tells_processes = true};
  ASSERT_TRUE(UploadDestination(otlp_peer(options), {}).send(two_kinds()).ok());
  ASSERT_EQ(receiver.bodies().size(), 2U);
  EXPECT_EQ(sums_in_otlp(receiver.bodies()[0]), kCpuSums);
  EXPECT_EQ(sums_in_otlp(receiver.bodies()[1]),
            (Sums{{"alloc-samples/count", 3}, {"alloc-space/bytes", 3000}}));
  for (const std::string& body : receiver.bodies()) EXPECT_THAT(body, HasSubstr("shop"));
  EXPECT_THAT(receiver.bodies()[1], Not(HasSubstr("bank"))) << "it allocates nothing";
}

TEST(TwoKinds, WaitTogetherInTheSpool) {
  const ScratchFolder folder;
  KindReceiver receiver(1);
  UploadOptions options;
  options.spool = Spool::open(folder.path("spool"), {}).value();
  UploadDestination destination(otlp_peer({.url = receiver.url(), .is_compressed = false}),
                                std::move(options));
  EXPECT_EQ(destination.send(two_kinds()).value_or(Delivery::arrived), Delivery::waits);
  EXPECT_EQ(destination.counters().waiting, 2U);
  EXPECT_EQ(destination.send(two_kinds(1)).value_or(Delivery::waits), Delivery::arrived);
  Sums all;
  const auto& bodies = receiver.bodies();
  for (std::size_t at = 1; at < bodies.size(); ++at)
    for (const auto& [column, sum] : sums_in_otlp(bodies[at])) all[column] += sum;
  for (const auto& [column, sum] : kAllSums) EXPECT_EQ(all[column], 2 * sum) << column;
}

TEST(TwoKinds, AreColumnsOfOneFileInAFolder) {
  const ScratchFolder folder;
  auto destination = ProfileFolder::create({.prefix = folder.path("app")});
  ASSERT_TRUE(destination.ok());
  ASSERT_TRUE(destination->send(two_kinds()).ok());
  EXPECT_EQ(sums_in(folder.read("app-000000.pb.gz")), kAllSums);
  EXPECT_THAT(
      folder.read("index.jsonl"),
      HasSubstr(
          R"("sums":{"samples/count":5,"cpu/nanoseconds":50,"alloc-samples/count":3,"alloc-space/bytes":3000})"));
}

// What a worker adds to the file of the one before it is added to each kind.
Sums sums_in_file(const std::string& name, bool is_added_to) {
  const ScratchFolder folder;
  auto destination = FileDestination::create(folder.path(name));
  EXPECT_TRUE(destination.ok());
  EXPECT_TRUE(destination->send(two_kinds()).ok());
  if (is_added_to) {
    EXPECT_TRUE(destination->send(two_kinds(1)).ok());
  }
  return sums_in(folder.read(name));
}

TEST(TwoKinds, AreColumnsOfFormatsThatHaveThem) {
  Sums twice = kAllSums;
  for (auto& [column, sum] : twice) sum *= 2;
  for (const char* name : {"a.pb.gz", "a.pprof", "a.pb"}) {
    EXPECT_EQ(sums_in_file(name, false), kAllSums) << name;
    EXPECT_EQ(sums_in_file(name, true), twice) << name;
  }
  EXPECT_EQ(sums_in_file("a.speedscope.json", false), kAllSums);
  Profile space;
  EXPECT_EQ(sums_in_otlp(encode(two_kinds().whole(space), OutputFormat::otlp).value()), kAllSums);
}

TEST(TwoKinds, FormatsOfOneColumnShowTheFirstKind) {
  for (const char* name : {"a.folded", "a.collapsed", "a.txt"})
    EXPECT_EQ(sums_in_file(name, true), (Sums{{"cpu/nanoseconds", 100}})) << name;
  for (const char* name : {"a.firefox.json", "a.firefox.json.gz"})
    EXPECT_THAT(sums_in_file(name, false), UnorderedElementsAre(Pair("cpu/nanoseconds", 50))) << name;
  const ScratchFolder folder;
  ASSERT_TRUE(FileDestination::create(folder.path("a.svg"))->send(two_kinds()).ok());
  EXPECT_THAT(folder.read("a.svg"), HasSubstr("50 ns"));
}

TEST(TwoKinds, InOneProfileKeepTheirTimesAndComments) {
  Profile space;
  const Profile& whole = two_kinds().whole(space);
  EXPECT_EQ(whole.samples.size(), 5U) << "equal stacks of different kinds have different times";
  EXPECT_EQ(whole.text(whole.default_value_type), "cpu");
  EXPECT_EQ(whole.text(whole.period_type.type), "cpu");
  std::vector<std::string_view> comments;
  for (const StringIndex comment : whole.comments) comments.push_back(whole.text(comment));
  EXPECT_THAT(comments, ElementsAre("of all", "of cpu", "of alloc-space"));
}

struct PipeCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

TEST(TwoKinds, AreReadByGoToolPprof) {
  if (std::system("command -v go >/dev/null 2>&1") != 0) GTEST_SKIP() << "go is not installed";
  const ScratchFolder folder;
  ASSERT_TRUE(FileDestination::create(folder.path("a.pb.gz"))->send(two_kinds()).ok());
  const std::string home = folder.path("go");
  const std::unique_ptr<std::FILE, PipeCloser> pipe(
      popen(fmt::format("HOME={0} GOCACHE={0} GOFLAGS= go tool pprof -symbolize=none -raw {1} 2>&1", home,
                        folder.path("a.pb.gz"))
                .c_str(),
            "r"));
  std::string text;
  for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(letter);
  EXPECT_THAT(text, HasSubstr("samples/count cpu/nanoseconds[dflt] alloc-samples/count alloc-space/bytes"));
}

}  // namespace
}  // namespace ddprof
