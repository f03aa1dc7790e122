#include "process/process_identity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "process/executed_child_fixture.hpp"

namespace ddprof {
namespace {

using namespace std::string_literals;

ProcessIdentity said(std::string_view environment) { return identity_in_environment(environment, ""); }

TEST(ProcessIdentity, IsWhatVariablesSay) {
  const auto identity = identity_in_environment(
      "DD_SERVICE=shop\0DD_ENV=prod\0DD_VERSION=2\0DD_EXTERNAL_ENV=it-false\0"s, "java");
  EXPECT_EQ(identity.service, "shop");
  EXPECT_EQ(identity.program, "shop");
  EXPECT_TRUE(identity.is_configured);
  EXPECT_EQ(identity.environment, "prod");
  EXPECT_EQ(identity.version, "2");
  EXPECT_EQ(identity.external_environment, "it-false");
}

TEST(ProcessIdentity, TheVariableOfDatadogWinsOverThoseOfOpenTelemetry) {
  EXPECT_EQ(said("OTEL_RESOURCE_ATTRIBUTES=service.name=third\0OTEL_SERVICE_NAME=second\0DD_SERVICE=first\0"s)
                .service,
            "first");
  EXPECT_EQ(said("OTEL_RESOURCE_ATTRIBUTES=service.name=third\0OTEL_SERVICE_NAME=second\0"s).service,
            "second");
  EXPECT_EQ(said("DD_SERVICE=\0OTEL_SERVICE_NAME=shop\0"s).service, "shop") << "an empty variable is none";
}

TEST(ProcessIdentity, IsFoundAmongResourceAttributes) {
  const auto identity = said(
      "A=b\0OTEL_RESOURCE_ATTRIBUTES=x=eu, service.name=shop,deployment.environment.name=prod,service.version=2\0"s);
  EXPECT_EQ(identity.service, "shop");
  EXPECT_EQ(identity.environment, "prod");
  EXPECT_EQ(identity.version, "2");
  EXPECT_EQ(said("OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test\0"s).environment, "test");
  EXPECT_EQ(said("OTEL_RESOURCE_ATTRIBUTES=service.name.x=shop,other=1\0"s).service, "");
}

TEST(ProcessIdentity, OnlyWholeNamesOfVariablesCount) {
  EXPECT_EQ(said("DD_SERVICE_MAPPING=a:b\0XDD_SERVICE=c\0DD_SERVICE\0"s).service, "");
  EXPECT_EQ(said("").service, "");
  EXPECT_EQ(said("\0\0=\0"s).service, "");
}

TEST(ProcessIdentity, WhatIsNotFitToBeShownIsLeftOutOrCut) {
  EXPECT_EQ(said("DD_SERVICE=a\x1b[2Jb\nc\0"s).service, "a[2Jbc");
  EXPECT_EQ(said("DD_SERVICE=" + std::string(5000, 'x')).service.size(), 200U);
  EXPECT_EQ(said("DD_SERVICE=" + std::string(199, 'x') + "\u00e9\u00e9").service, std::string(199, 'x'));
  EXPECT_EQ(said("DD_ENV=a\nb\0"s).environment, "ab");
}

TEST(ProcessIdentity, IsPublishedOrNamedAfterTheProgram) {
  ProcessContext context;
  context.resource = {{"service.name", "shop"}, {"service.instance.id", "1-2-3"}, {"service.version", "3"}};
  context.attributes = {{"datadog.process_tags", "a:b"}};
  const auto published = with_published(identity_in_environment("A=b\0"s, "java"), context);
  EXPECT_EQ(published.service, "shop");
  EXPECT_EQ(published.program, "java");
  EXPECT_EQ(published.instance_id, "1-2-3");
  EXPECT_EQ(published.version, "3");
  EXPECT_EQ(published.process_tags, "a:b");
  const auto configured = with_published(said("DD_SERVICE=bank\0DD_VERSION=1\0"s), context);
  EXPECT_EQ(configured.service, "bank");
  EXPECT_EQ(configured.version, "1");
  EXPECT_EQ(identity_in_environment("", "java").service, "java");
}

TEST(ProcessIdentity, LeavesOutWhatIsNotFitForAHeader) {
  EXPECT_EQ(said("DD_EXTERNAL_ENV=a\nb\0"s).external_environment, "");
  EXPECT_EQ(said("DD_EXTERNAL_ENV=" + std::string(501, 'a')).external_environment, "");
  EXPECT_EQ(said("DD_EXTERNAL_ENV=" + std::string(500, 'a')).external_environment.size(), 500U);
}

TEST(ProcessIdentity, VariablesAreThoseThatTheProcessWasStartedWith) {
  ::setenv("DDPROF_TEST_SET_LATER", "x", 1);
  EXPECT_EQ(read_variable(Pid{::getpid()}, "DDPROF_TEST_SET_LATER"), "");
  EXPECT_EQ(read_variable(Pid{0x7fffffff}, "PATH"), "");
  const char* path = std::getenv("PATH");
  EXPECT_EQ(read_variable(Pid{::getpid()}, "PATH"), path != nullptr ? path : "");
}

TEST(ProcessIdentity, AnExecutableIsItsFilesName) {
  EXPECT_EQ(executable_in_link("/usr/bin/redis-server"), "redis-server");
  EXPECT_EQ(executable_in_link("/tmp/a b (deleted)"), "a b");
  EXPECT_EQ(executable_in_link(""), "");
}

TEST(ProcessIdentity, IsReadFromTheEnvironmentOfALivingProcess) {
  const ExecutedChild child("DD_SERVICE=checkout");
  ForeignMemory memory;
  const auto identity = read_process_identity(child.pid(), {.container_id = "c1", .cgroup = {}}, memory);
  EXPECT_TRUE(identity.is_read);
  EXPECT_TRUE(identity.is_configured);
  EXPECT_EQ(identity.service, "checkout");
  EXPECT_EQ(identity.entity_id, "ci-c1");
  EXPECT_EQ(read_process_name(child.pid()), "sleep");
}

TEST(ProcessIdentity, WithoutVariablesItIsTheExecutable) {
  ForeignMemory memory;
  const auto own = read_process_identity(Pid{::getpid()}, {}, memory);
  EXPECT_TRUE(own.is_read);
  EXPECT_EQ(own.service, "process_test");
  EXPECT_FALSE(own.is_configured);
  EXPECT_FALSE(read_process_identity(Pid{0x3fffff}, {}, memory).is_read);
  EXPECT_EQ(read_process_name(Pid{0x3fffff}), "");
}

}  // namespace
}  // namespace ddprof
