#include "process/thread_context.hpp"

#include <gmock/gmock.h>

#include <string>

namespace ddprof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

std::string record_of(std::string_view attributes, char valid = 1) {
  std::string record = "0123456789abcdef";
  record += std::string("\0\0\0\0\0\0\1\2", 8) + valid + '\0';
  record += static_cast<char>(attributes.size());
  record += '\0';
  return record += attributes;
}

std::optional<ThreadContext> parse(const std::string& record) {
  return parse_thread_context(std::as_bytes(std::span(record)));
}

auto attribute(int key, const char* text) {
  return AllOf(Field(&ThreadContext::Attribute::key, key), Field(&ThreadContext::Attribute::text, text));
}

TEST(ThreadContextRecord, HasATraceASpanAndAttributes) {
  const std::string record = record_of(std::string("\0\2ab\3\1c", 7));
  const auto context = parse(record);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id[1], '1');
  EXPECT_EQ(context->span_id, 0x102U);
  EXPECT_THAT(context->attributes, ElementsAre(attribute(0, "ab"), attribute(3, "c")));
}

TEST(ThreadContextRecord, OfAKeyThatIsThereTwiceTheLastCounts) {
  const std::string record = record_of(std::string("\1\1a\2\1b\1\1c", 9));
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(2, "b"), attribute(1, "c")));
}

TEST(ThreadContextRecord, IsNoneWhileItIsWritten) { EXPECT_FALSE(parse(record_of("", 0))); }

TEST(ThreadContextRecord, IsNoneWhenItIsCut) { EXPECT_FALSE(parse(record_of("").substr(0, 27))); }

TEST(ThreadContextRecord, AttributesEndWhereTheBytesDo) {
  std::string record = record_of(std::string("\1\1a\2\77b", 6));
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(1, "a")));
  record[26] = '\377';
  EXPECT_THAT(parse(record)->attributes, ElementsAre(attribute(1, "a")));
  EXPECT_THAT(parse(record_of("x"))->attributes, IsEmpty());
}

}  // namespace
}  // namespace ddprof
