#include "cli/option_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/show_config.hpp"
#include "export/peers.hpp"

namespace ddprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Variables = std::map<std::string, std::string>;

std::string collector_of(const std::vector<const char*>& args, const Variables& variables = {}) {
  return chosen_collector(OptionFixture{.variables = variables}.parsed(args)).value_or("none");
}

Peer peer_of(const std::vector<const char*>& args, const Variables& variables = {}) {
  const Options options = OptionFixture{.variables = variables}.parsed(args);
  return collector_peer(chosen_collector(options).value_or(""), options, "x", {});
}

TEST(OtlpChoice, IsNoneByDefault) {
  EXPECT_EQ(collector_of({"x"}), "none");
  EXPECT_EQ(collector_of({"x"}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}}), "none");
  EXPECT_EQ(collector_of({"--do-export=false", "--otlp-endpoint", "http://a:4318", "x"}), "none");
}

TEST(OtlpChoice, AddsThePathToABaseAndNoneToAWholeAddress) {
  EXPECT_EQ(collector_of({"--otlp-endpoint", "http://a:4318/", "x"}), "http://a:4318/v1development/profiles");
  EXPECT_EQ(collector_of({"x"}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://a/otlp"}}),
            "https://a/otlp/v1development/profiles");
  EXPECT_EQ(collector_of({"x"}, {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318"},
                                 {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://b/p?q=1"}}),
            "http://b/p?q=1");
}

TEST(OtlpChoice, RefusesAnAddressThatWasTypedWrong) {
  EXPECT_THAT(failure({"--otlp-endpoint", "collector:4317", "x"}).message,
              HasSubstr("--otlp-endpoint: read URL collector:4317"));
  EXPECT_THAT(failure({"--otlp-endpoint", "http://me:secret@a", "x"}).message, Not(HasSubstr("secret")));
  EXPECT_THAT(failure({"--otlp-headers", "secret", "x"}).message,
              AllOf(HasSubstr("--otlp-headers: header 1"), Not(HasSubstr("secret"))));
}

TEST(OtlpChoice, LeavesAloneWhatTheEnvironmentHasForOthers) {
  const Options options = OptionFixture{.variables = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"},
                                                      {"OTEL_EXPORTER_OTLP_HEADERS", "secret"}}}
                              .parsed({"x"});
  EXPECT_EQ(chosen_collector(options), std::nullopt);
  EXPECT_THAT(options.notices, Contains(HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT is left alone")));
  EXPECT_THAT(options.notices, Contains(HasSubstr("OTEL_EXPORTER_OTLP_HEADERS is left alone")));
  EXPECT_THAT(options.notices, Not(Contains(HasSubstr("secret"))));
}

TEST(OtlpChoice, SaysThatOneProtocolIsSpoken) {
  const Variables grpc = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4317"},
                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}};
  const Options meant_for_others = OptionFixture{.variables = grpc}.parsed({"x"});
  EXPECT_EQ(chosen_collector(meant_for_others), std::nullopt);
  EXPECT_THAT(meant_for_others.notices, Contains(AllOf(HasSubstr("grpc"), HasSubstr("http/protobuf"),
                                                       HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT"))));
  EXPECT_EQ(collector_of({"--otlp-endpoint", "http://b:4318", "x"}, grpc),
            "http://b:4318/v1development/profiles");
  const Options nobody = OptionFixture{.variables = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}}.parsed({"x"});
  EXPECT_THAT(nobody.notices, Not(Contains(HasSubstr("grpc"))));
}

TEST(OtlpChoice, PutsKeysIntoTheHeadersOfRequests) {
  const Peer peer = peer_of({"--otlp-endpoint", "http://a:4318", "x"},
                            {{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b,c=d"}});
  EXPECT_EQ(peer.headers, (HttpHeaders{{"api-key", "a b"}, {"c", "d"}}));
  EXPECT_TRUE(peer.uses_proxy);
}

TEST(OtlpChoice, TrustsItsOwnCertificate) {
  const std::vector<const char*> args = {"--otlp-endpoint", "https://a", "x"};
  EXPECT_EQ(peer_of(args).certificate_file, "");  // that of all is everybody's, see make_destination()
  EXPECT_EQ(peer_of(args, {{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/own.pem"}}).certificate_file, "/own.pem");
}

TEST(OtlpChoice, ShowsNoSecrets) {
  const Options options =
      OptionFixture{.variables = {{"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "https://a/p?token=secret"},
                                  {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret"}}}
          .parsed({"x"});
  EXPECT_THAT(show_config(options), AllOf(HasSubstr("https://a/p?****"), Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace ddprof
