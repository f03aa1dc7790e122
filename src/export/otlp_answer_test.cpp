#include "export/otlp_peer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

namespace ddprof {
namespace {

using testing::HasSubstr;

std::string otlp_reply(std::int64_t rejected, std::string_view message) {
  std::string bytes;
  protozero::pbf_writer response(bytes);
  protozero::pbf_writer partial_success(response, 1);
  if (rejected != 0) partial_success.add_int64(1, rejected);
  if (!message.empty()) partial_success.add_string(2, std::string(message));
  return bytes;
}

TEST(OtlpAnswer, HasNoObjectionWhereEverythingWasTaken) {
  EXPECT_EQ(otlp_objection(""), "");
  EXPECT_EQ(otlp_objection(std::string("\x0a\x00", 2)), "");
}

TEST(OtlpAnswer, SaysWhatWasRejectedAndWhy) {
  EXPECT_EQ(otlp_objection(otlp_reply(3, "too deep")), "rejects 3 of the profiles: too deep");
  EXPECT_EQ(otlp_objection(otlp_reply(1, "")), "rejects 1 of the profiles");
  EXPECT_EQ(otlp_objection(otlp_reply(0, "old numbering")), "old numbering");
}

TEST(OtlpAnswer, SkipsFieldsOfLaterVersions) {
  EXPECT_EQ(otlp_objection(otlp_reply(0, "x") + "\x10\x05"), "x");
}

TEST(OtlpAnswer, IsNotWhateverSomebodySays) {
  const std::string whole = otlp_reply(3, "too deep");
  for (const std::string& text : {std::string("<html>It works!</html>"), std::string("{}"),
                                  std::string("\xff"), whole.substr(0, whole.size() - 1)})
    EXPECT_THAT(otlp_objection(text), HasSubstr("not the answer of a collector")) << text;
}

}  // namespace
}  // namespace ddprof
