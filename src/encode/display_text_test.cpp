#include "encode/display_text.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(DisplayText, CutsTheMiddleAndCountsCharacters) {
  EXPECT_EQ(fit("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(fit("abcdefgh", 5), "ab…gh");
  EXPECT_EQ(fit("abcdefgh", 4), "ab…h");
  EXPECT_EQ(fit("éééééé", 3), "é…é");
  EXPECT_EQ(display_width(fit("éééééé", 4)), 4U);
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(right_aligned("é", 3), "  é");
  EXPECT_EQ(left_aligned("é", 3), "é  ");
  EXPECT_EQ(fit_left("abcdef", 4), "abc…");
  EXPECT_EQ(fit_left("abc", 3), "abc");
}

TEST(DisplayText, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(display_width("函数"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);  // e and a combining acute accent
  EXPECT_EQ(display_width("🙂"), 2U);
  for (std::size_t width = 0; width < 12; ++width) {
    EXPECT_LE(display_width(fit("函数函数函数", width)), width);
    EXPECT_LE(display_width(fit("a函数b函数c", width)), width);
    EXPECT_LE(display_width(fit_left("函数函数函数", width)), width);
  }
}

TEST(DisplayText, ReplacesControlCharactersAndBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\xef\xbf\xbd[31mb");
  EXPECT_EQ(printable("a\xff"), "a\xef\xbf\xbd");
  EXPECT_EQ(printable("a\xc2\x9b"), "a\xef\xbf\xbd");  // U+009B, an escape sequence in one character
  EXPECT_EQ(printable("é函"), "é函");
}

TEST(DisplayName, GivesUpTemplateArgumentsFromTheInside) {
  const std::string name = "std::map<int, std::vector<long, std::allocator<long>>>::find(int const&)";
  EXPECT_EQ(fit_name(name, 100), name);
  EXPECT_EQ(fit_name(name, 70), "std::map<int, std::vector<long, std::allocator<…>>>::find(int const&)");
  EXPECT_EQ(fit_name(name, 60), "std::map<int, std::vector<…>>::find(int const&)");
  EXPECT_EQ(fit_name(name, 40), "std::map<…>::find(int const&)");
  EXPECT_EQ(fit_name(name, 20), "std::map<…>::find(…)");
}

TEST(DisplayName, OperatorsAreNoBrackets) {
  EXPECT_EQ(fit_name("Stream& operator<< <int>(Stream&, int)", 30), "Stream& operator<< <…>(…)");
  EXPECT_EQ(fit_name("Pointer<Value>::operator->() const", 30), "Pointer<…>::operator->() const");
  EXPECT_LE(display_width(fit_name("bool operator<(A<int> const&, A<int> const&)", 20)), 20U);
}

TEST(DisplayName, FitsWhateverTheBracketsDo) {
  for (const char* name :
       {"a<b<c<d", "a>>>>>>>>>>>b", "((((((((((((", "f(g)h)i)j)k)l)m)n)o)p", "<<<<<<<<<<<<<"}) {
    for (std::size_t width : {0U, 1U, 2U, 5U, 8U})
      EXPECT_LE(display_width(fit_name(name, width)), width) << name;
  }
  const std::string deep = std::string(100'000, '<') + std::string(100'000, '>');
  EXPECT_LE(display_width(fit_name(deep, 40)), 40U);
}

}  // namespace
}  // namespace ddprof
