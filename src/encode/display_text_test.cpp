#include "encode/display_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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
  EXPECT_EQ(fit_name("Less::operator()(Order const&) const", 30), "Less::operator()(…) const");
  EXPECT_LE(display_width(fit_name("bool operator<(A<int> const&, A<int> const&)", 20)), 20U);
}

TEST(DisplayName, IsTheFunctionsOwnNameWhereThereIsRoomForLittle) {
  const std::string name =
      "std::vector<int, std::allocator<int>>::push_back(int const&) const [clone .isra.0]";
  EXPECT_EQ(fit_short_name(name, 55), "std::vector<…>::push_back(…) const [clone .isra.0]");
  EXPECT_EQ(fit_short_name(name, 30), "std::vector::push_back");
  EXPECT_EQ(fit_short_name(name, 20), "vector::push_back");
  EXPECT_EQ(fit_short_name(name, 12), "push_back");
  EXPECT_EQ(fit_short_name(name, 5), "pu…ck");
  EXPECT_EQ(fit_short_name("std::ctype<char> const& std::use_facet<std::ctype<char>>(std::locale)", 18),
            "std::use_facet");
  EXPECT_EQ(fit_short_name("shop::render_receipt[abi:cxx11](shop::Order const&, double)", 20),
            "shop::render_receipt");
  EXPECT_EQ(fit_short_name("main::{lambda(int)#1}::operator()(int) const", 12), "operator()");
  EXPECT_EQ(fit_short_name("void f(int) const::{lambda(int)#1}::operator()(int) const", 32),
            "f(…)::{lambda(…)#1}::operator()");
  EXPECT_EQ(fit_short_name("JS:*render /srv/app/server.js:10:5", 20), "JS:*render…r.js:10:5");
  EXPECT_EQ(fit_short_name("net/http.(*conn).serve", 20), "net/http.(…).serve");
  EXPECT_EQ(fit_short_name("net/http.(*conn).serve", 9), "net/…erve");
  EXPECT_EQ(fit_short_name("[truncated: no unwind info in libfoo.so]", 10), "[trun….so]");
  EXPECT_EQ(fit_short_name("<lambda(std::vector<int>)>", 5), "<…>");
}

TEST(DisplayName, FitsWhateverTheBracketsDo) {
  for (const char* name :
       {"a<b<c<d", "a>>>>>>>>>>>b", "((((((((((((", "f(g)h)i)j)k)l)m)n)o)p", "<<<<<<<<<<<<<"}) {
    for (std::size_t width : {0U, 1U, 2U, 5U, 8U})
      EXPECT_LE(std::max(display_width(fit_name(name, width)), display_width(fit_short_name(name, width))),
                width)
          << name;
  }
  const std::string deep = std::string(100'000, '<') + std::string(100'000, '>');
  EXPECT_LE(display_width(fit_name(deep, 40)), 40U);
}

TEST(DisplayText, BreaksLinesAtSpaces) {
  EXPECT_EQ(wrapped("aa bb cc", 2, 7), "aa bb\n  cc");  // the first line ends at the edge
  EXPECT_EQ(wrapped("aa bb cc", 2, 6), "aa\n  bb\n  cc");
  EXPECT_EQ(wrapped("too-long-for-it b", 2, 8), "too-long-for-it\n  b");
  EXPECT_EQ(wrapped("", 2, 8), "");
}

TEST(DisplayText, PadsAndCutsToAWidth) {
  EXPECT_EQ(left_aligned("ab", 3), "ab ");
  EXPECT_EQ(right_aligned("ab", 3), " ab");
  for (const std::size_t width : {1U, 2U}) {
    EXPECT_EQ(left_aligned("ab", width), "ab");
    EXPECT_EQ(right_aligned("ab", width), "ab");
  }
  EXPECT_EQ(fit_left("abcd", 4), "abcd");
  EXPECT_EQ(fit_left("abcd", 3), "ab…");
  EXPECT_EQ(fit_left("abcd", 1), "…");
  EXPECT_EQ(fit_left("abcd", 0), "");
}

TEST(DisplayText, LinesAndColoursOfATextStay) {
  EXPECT_EQ(printable_lines("one\n\x1b[1;31mtwo\x1b[0m\tthree\n"), "one\n\x1b[1;31mtwo\x1b[0m\tthree\n");
  EXPECT_EQ(printable_lines("a\x1b[2Jb\rc\x1b]0;title\ad"), "a\uFFFD[2Jb\uFFFDc\uFFFD]0;title\uFFFDd");
  EXPECT_EQ(printable_lines("\x1b["), "\uFFFD[");
  EXPECT_EQ(printable_lines("\xc2\x9b\xff\x7f…"), "\uFFFD\uFFFD\uFFFD…");
}

TEST(DisplayText, OnlyControlCharactersAreReplaced) {
  EXPECT_EQ(printable(" ~\u00a0\u0300"), " ~\u00a0\u0300");
  EXPECT_EQ(printable("\x1f|\x7f|\xc2\x80|\xc2\x9f"), "\uFFFD|\uFFFD|\uFFFD|\uFFFD");
}

// The first and the last of a block, and their neighbours.
TEST(DisplayText, WidthsAreThoseOfTheBlocksOfUnicode) {
  for (const char* narrow : {"\u02ff", "\u0370", "\u10ff", "\u1160", "\u2e7f", "\u303f", "\uff61"})
    EXPECT_EQ(display_width(narrow), 1U) << narrow;
  for (const char* mark : {"\u0300", "\u036f", "\u200b", "\u200f", "\ufe20", "\ufe2f"})
    EXPECT_EQ(display_width(mark), 0U) << mark;
  for (const char* wide : {"\u1100", "\u115f", "\u2e80", "\u303e", "\uff60", "\U0001f300", "\U0003fffd"})
    EXPECT_EQ(display_width(wide), 2U) << wide;
}

TEST(DisplayName, ArgumentsAreGivenUpOnlyWhereTheyDoNotFit) {
  for (const std::string name : {"map<int, list<long>>::find(int)", "f(int)", "a::b::c"}) {
    EXPECT_EQ(fit_name(name, name.size()), name);
    EXPECT_EQ(fit_short_name(name, name.size()), name);
  }
  EXPECT_EQ(fit_name("map<int, list<long>>::find(int)", 30), "map<int, list<…>>::find(int)");
  EXPECT_EQ(fit_name("map<int, list<long>>::find(int)", 28), "map<int, list<…>>::find(int)");
  EXPECT_EQ(fit_name("map<int, list<long>>::find(int)", 27), "map<…>::find(int)");
  EXPECT_EQ(fit_name("map<int>::find(int)", 15), "map<…>::find(…)");
}

TEST(DisplayName, EveryOperatorHasItsSigns) {
  EXPECT_EQ(fit_name("A<int>::operator>>(A<int>&)", 24), "A<…>::operator>>(A<…>&)");
  EXPECT_EQ(fit_name("A<int>::operator<=>(A<int>&)", 24), "A<…>::operator<=>(A<…>&)");
  EXPECT_EQ(fit_name("A<int>::operator<(A<int>&)", 22), "A<…>::operator<(A<…>&)");
  EXPECT_EQ(fit_name("f(int)->list<long>", 15), "f(int)->list<…>");
}

TEST(DisplayName, AsManyScopesAsFit) {
  EXPECT_EQ(fit_short_name("one::two::three", 10), "two::three");
  EXPECT_EQ(fit_short_name("one::two::three", 9), "three");
  EXPECT_EQ(fit_short_name("::two::three", 11), "two::three");
  EXPECT_EQ(fit_short_name("void one::two(int)", 8), "one::two");
}

TEST(DisplayText, AColourHasAnEnd) {
  EXPECT_EQ(printable_lines("\x1b[31"), "\uFFFD[31");
  EXPECT_EQ(printable_lines("\x1b[m"), "\x1b[m");
}

}  // namespace
}  // namespace ddprof
