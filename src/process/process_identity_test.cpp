#include "process/process_identity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace ddprof {
namespace {

using namespace std::string_literals;

TEST(ProcessIdentity, IsWhatVariablesSay) {
  const auto said =
      said_identity("DD_SERVICE=shop\0DD_ENV=prod\0DD_VERSION=2\0DD_EXTERNAL_ENV=it-false\0"s, {}, "java");
  EXPECT_EQ(said.service, "shop");
  EXPECT_EQ(said.program, "shop");
  EXPECT_EQ(said.environment, "prod");
  EXPECT_EQ(said.version, "2");
  EXPECT_EQ(said.external_environment, "it-false");
}

TEST(ProcessIdentity, IsWhatOpenTelemetrysVariablesSay) {
  const auto said = said_identity(
      "OTEL_RESOURCE_ATTRIBUTES=service.name=shop, deployment.environment.name=prod,service.version=2\0"s, {},
      "java");
  EXPECT_EQ(said.service, "shop");
  EXPECT_EQ(said.environment, "prod");
  EXPECT_EQ(said.version, "2");
  EXPECT_EQ(said_identity("OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test\0"s, {}, "").environment,
            "test");
}

TEST(ProcessIdentity, IsPublishedOrNamedAfterTheProgram) {
  ProcessContext context;
  context.resource = {{"service.name", "shop"}, {"service.instance.id", "1-2-3"}, {"service.version", "3"}};
  context.attributes = {{"datadog.process_tags", "a:b"}};
  const auto published = said_identity("A=b\0"s, context, "java");
  EXPECT_EQ(published.service, "shop");
  EXPECT_EQ(published.program, "java");
  EXPECT_EQ(published.instance_id, "1-2-3");
  EXPECT_EQ(published.version, "3");
  EXPECT_EQ(published.process_tags, "a:b");
  EXPECT_EQ(said_identity("DD_SERVICE=bank\0DD_VERSION=1\0"s, context, "java").service, "bank");
  EXPECT_EQ(said_identity("", {}, "java").service, "java");
}

TEST(ProcessIdentity, LeavesOutWhatIsNotFitForAHeader) {
  EXPECT_EQ(said_identity("DD_EXTERNAL_ENV=a\nb\0"s, {}, "").external_environment, "");
  EXPECT_EQ(said_identity("DD_EXTERNAL_ENV=" + std::string(501, 'a'), {}, "").external_environment, "");
  EXPECT_EQ(said_identity("DD_ENV=a\nb\0"s, {}, "").environment, "ab");
}

TEST(ProcessIdentity, IsReadOfALivingProcessOnly) {
  ForeignMemory memory;
  const auto own = read_process_identity(Pid{::getpid()}, memory);
  ASSERT_TRUE(own.has_value());
  EXPECT_FALSE(own->program.empty());
  EXPECT_FALSE(read_process_identity(Pid{0x3fffff}, memory).has_value());
}

}  // namespace
}  // namespace ddprof
