#include "process/process_context.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <protozero/pbf_writer.hpp>

#include "process/published_context_fixture.hpp"
#include "proto/otlp_fields.hpp"

namespace ddprof {
namespace {

std::optional<ProcessContext> read_own_context() {
  ForeignMemory memory;
  auto published = read_published_context(Pid{::getpid()}, memory);
  return published ? std::optional(std::move(published->context)) : std::nullopt;
}

std::string attribute(const std::string& key, const std::string& value) {
  std::string text;
  protozero::pbf_writer(text).add_string(otlp_field::kText, value);
  std::string message;
  protozero::pbf_writer writer(message);
  writer.add_string(otlp_field::kKey, key);
  writer.add_message(otlp_field::kValue, text);
  return message;
}

std::string shop_context() {
  std::string resource;
  protozero::pbf_writer resource_writer(resource);
  resource_writer.add_message(otlp_field::kResourceAttributes, attribute("service.name", "shop"));
  resource_writer.add_message(otlp_field::kResourceAttributes, attribute("service.instance.id", "7c0f"));
  std::string payload;
  protozero::pbf_writer writer(payload);
  writer.add_message(1, resource);
  writer.add_message(2, attribute("datadog.process_tags", "entrypoint.name:shop"));
  return payload;
}

TEST(ProcessContext, KnowsWhatTheKeysOfThreadsMean) {
  const std::vector<std::string> keys{"datadog.local_root_span_id", "http.route"};
  const auto context = parse_process_context(context_with_thread_keys(keys));
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(context->thread_keys, keys);
}

TEST(ProcessContext, IsReadFromAProcessThatPublishesIt) {
  const PublishedHere publisher(shop_context());
  const auto context = read_own_context();
  ASSERT_TRUE(context);
  EXPECT_EQ(context->text("service.name"), "shop");
  EXPECT_EQ(context->text("service.instance.id"), "7c0f");
  EXPECT_EQ(context->text("service.version"), "");
  EXPECT_EQ(context->attributes.at("datadog.process_tags"), "entrypoint.name:shop");
}

TEST(ProcessContext, IsNotBelievedWhileItIsWrittenOrFromAnotherVersion) {
  PublishedHere publisher(shop_context());
  publisher.write(16, std::uint64_t{0});
  EXPECT_FALSE(read_own_context());
  publisher.write(16, std::uint64_t{2});
  EXPECT_TRUE(read_own_context());
  publisher.write(8, std::uint32_t{1});
  EXPECT_FALSE(read_own_context());
}

TEST(ProcessContext, OfAWildSizeOrPlaceIsNone) {
  PublishedHere publisher(shop_context());
  publisher.write(12, std::uint32_t{1} << 30U);
  EXPECT_FALSE(read_own_context());
  publisher.write(12, std::uint32_t{16});
  publisher.write(24, std::uint64_t{16});
  EXPECT_FALSE(read_own_context());
}

TEST(ProcessContext, IsNoneWhereNothingIsPublished) { EXPECT_FALSE(read_own_context()); }

TEST(ProcessContext, IsFoundByItsNameInAnyOfItsForms) {
  const std::string line = "7f0000001000-7f0000002000 rw-p 00000000 00:01 42                         ";
  for (const char* name : {"/memfd:OTEL_CTX (deleted)", "[anon:OTEL_CTX]", "[anon_shmem:OTEL_CTX]"})
    EXPECT_EQ(find_process_context("nonsense\n" + line + name + "\n"), Address{0x7f0000001000}) << name;
  EXPECT_FALSE(find_process_context(line + "/tmp/OTEL_CTX\n"));
}

TEST(ProcessContext, CutAnywhereIsRefusedOrShorter) {
  const std::string payload = shop_context();
  for (std::size_t size = 0; size < payload.size(); ++size) {
    const auto context = parse_process_context(payload.substr(0, size));
    EXPECT_TRUE(!context || context->resource.size() + context->attributes.size() < 3) << size;
  }
}

}  // namespace
}  // namespace ddprof
