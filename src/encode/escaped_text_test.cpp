#include "encode/escaped_text.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

using namespace std::literals;

// The first and the last of each length, and their neighbours that are none (Unicode, table 3-7).
TEST(Utf8, SequencesAreThoseOfUnicode) {
  const struct {
    std::string_view text;
    std::size_t length;
  } cases[] = {
      {"", 0},
      {"\0"sv, 1},
      {"\x7f", 1},
      {"\x80", 0},
      {"\xc1\xbf", 0},
      {"\xc2\x80", 2},
      {"\xdf\xbf", 2},
      {"\xdf\xc0", 0},
      {"\xdf\x7f", 0},
      {"\xdf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xe0\xa0\x80", 3},
      {"\xef\xbf\xbf", 3},
      {"\xef\xbf", 0},
      {"\xef\xbf\xc0", 0},
      {"\xed\x9f\xbf", 3},
      {"\xed\xa0\x80", 0},
      {"\xee\x80\x80", 3},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xf0\x90\x80\x80", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\xf4\x90\x80\x80", 0},
      {"\xf5\x80\x80\x80", 0},
      {"\xf0\x90\x80", 0},
      {"\xf0\x90\x80\x7f", 0},
      {"\xff", 0},
  };
  for (const auto& [text, length] : cases)
    EXPECT_EQ(utf8_sequence_length(text), length) << testing::PrintToString(text);
}

TEST(Utf8, EachByteThatIsNoneIsReplaced) {
  EXPECT_EQ(to_utf8("a\xff\xfe"
                    "ü"),
            "a\xef\xbf\xbd\xef\xbf\xbdü");
  EXPECT_TRUE(is_utf8("aü"));
  EXPECT_FALSE(is_utf8("ü\xff"));
}

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonString, EscapesWhatJsonDoesNotAllow) {
  EXPECT_EQ(json_of("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_of("\x1f \n\x7f"), "\"\\u001f \\u000a\x7f\"");
  EXPECT_EQ(json_of("\xff"), "\"\xef\xbf\xbd\"");
}

TEST(ScriptString, MeansNothingToAReaderOfMarkup) {
  std::string out;
  append_script_string(out, "</a>&b");
  EXPECT_EQ(out, "\"\\u003c/a\\u003e\\u0026b\"");
}

TEST(XmlText, EscapesMarkup) { EXPECT_EQ(xml_text("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;"); }

TEST(CleanText, HasNoMoreThanEightKibibytes) {
  const std::string longest(8192, 'x');
  EXPECT_EQ(clean_text(longest), longest);
  EXPECT_EQ(clean_text(longest + "y"), std::string(4096, 'x') + "…" + std::string(4095, 'x') + "y");
}

TEST(CleanText, HasNoCodesThatXmlDoesNotKnow) {
  EXPECT_EQ(clean_text("a\xef\xbf\xbe\xef\xbf\xbf"
                       "b"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace ddprof
