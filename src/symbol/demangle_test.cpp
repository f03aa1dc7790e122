#include "symbol/demangle.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(Demangle, ReadsCxxNames) {
  EXPECT_EQ(demangle("_Z4workv"), "work()");
  EXPECT_EQ(demangle("_ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
  EXPECT_EQ(demangle("_Z4workv.cold"), "work() [clone .cold]");
}

TEST(Demangle, ReadsRustNamesOfBothKindsWithoutTheirHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
  EXPECT_EQ(demangle("_ZN4main13gr$uf6$$udf$e17h0123456789abcdefE"), "main::größe");
  EXPECT_EQ(demangle("_ZN4main6$u20ac17h0123456789abcdefE"), "main::$u20ac");
  for (const auto& [spelled, letter] : {std::pair("_$u10ffff$", "\xf4\x8f\xbf\xbf"),
                                        {"_$u80$", "\xc2\x80"},
                                        {"_$ud7ff$", "\xed\x9f\xbf"},
                                        {"_$ue000$", "\xee\x80\x80"},
                                        {"_$u7ff$", "\xdf\xbf"},
                                        {"_$u800$", "\xe0\xa0\x80"},
                                        {"_$uffff$", "\xef\xbf\xbf"},
                                        {"_$u10000$", "\xf0\x90\x80\x80"},
                                        {"_$ud800$", "$ud800$"},
                                        {"_$udfff$", "$udfff$"},
                                        {"_$u110000$", "$u110000$"}}) {
    const std::string name = spelled;
    EXPECT_EQ(demangle("_ZN4main" + std::to_string(name.size()) + name + "17h0123456789abcdefE"),
              std::string("main::") + letter);
  }
}

TEST(Demangle, ReadsDNames) { EXPECT_EQ(demangle("_D8demangle4testFZv"), "demangle.test()"); }

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* name : {"main", "runtime.mallocgc", "github.com/a/b.(*T).Method", "_start", "_Z",
                           "_Znonsense", "_D", "_R", ""}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, KeepsWhatTheLinkerAppended) {
  EXPECT_EQ(demangle("_Z4workv@plt"), "work()@plt");
  EXPECT_EQ(demangle("memcpy@plt"), "memcpy@plt");
}

TEST(Demangle, KeepsClonesAndDropsNumbersOfLlvm) {
  EXPECT_EQ(demangle("_Z4workv.part.0"), "work() [clone .part.0]");
  EXPECT_EQ(demangle("_Z4workv.cold@@VERSION_1"), "work() [clone .cold]@@VERSION_1");
  EXPECT_EQ(demangle("_D8demangle4testFZv.cold"), "demangle.test() [clone .cold]");
  EXPECT_EQ(demangle("_RNvCskwGfYPst2Cb_3foo16example_function.cold"), "foo::example_function [clone .cold]");
  for (const char* suffix : {".llvm.1", ".llvm.13271896217531841239"}) {
    EXPECT_EQ(demangle("_Z4workv" + std::string(suffix)), "work()");
    EXPECT_EQ(demangle("_RNvCskwGfYPst2Cb_3foo16example_function" + std::string(suffix)),
              "foo::example_function");
    EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE" + std::string(suffix)), "core::fmt::write");
    EXPECT_EQ(demangle("local_function" + std::string(suffix)), "local_function");
  }
  for (const char* name : {".llvm.1", "name.llvm.", "name.llvm.x1", "123"}) EXPECT_EQ(demangle(name), name);
}

// Neither libiberty nor LLVM 14 reads them.
TEST(Demangle, LeavesSwiftNamesAsTheyAre) { EXPECT_EQ(demangle("$s4main3fooyyF"), "$s4main3fooyyF"); }

TEST(Demangle, BoundsNamesThatExplode) {
  // f(A<int, int>, A<S0, S0>, A<S1, S1>, ...): each parameter is twice as long as the one before.
  std::string bomb = "_Z1f1AIiiE";
  const auto substitution = [](std::size_t number) {
    constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return "S" + std::string(1, digits[number]) + "_";
  };
  for (std::size_t level = 0; level < 35; ++level)
    bomb += "S_I" + substitution(level) + substitution(level) + "E";
  const std::string name = demangle(bomb);
  EXPECT_TRUE(name.starts_with("f(A<int, int>, A<A<int, int>, A<int, int> >,")) << name;
  EXPECT_TRUE(name.ends_with("…"));
  EXPECT_LE(name.size(), kMaxNameBytes + 3);
  const std::string deep = "_Z1f" + std::string(3000, 'P') + "i";
  EXPECT_LE(demangle(deep).size(), kMaxNameBytes + 10);
  EXPECT_LE(demangle("_Z1f" + std::string(100000, 'P')).size(), kMaxNameBytes + 10);
}

TEST(Demangle, KeepsTheEndOfLongNames) {
  const auto nested = [](std::size_t scopes) {
    std::string name = "_ZN";
    for (std::size_t scope = 0; scope < scopes; ++scope) name += "40" + std::string(40, 'a');
    return name + "12the_functionEv";
  };
  // 2,000 bytes are kept whole, and longer names than libiberty reads by itself are read.
  const std::string whole = demangle(nested(45));
  EXPECT_GT(whole.size(), 1800U);
  EXPECT_EQ(whole.find("…"), std::string::npos);
  EXPECT_TRUE(whole.ends_with("::the_function()")) << whole;
  // f<A, A, …>(…)::the_function: few bytes that stand for 20,000.
  std::string list = "_ZN200" + std::string(200, 'b') + "IJ";
  for (int at = 0; at < 100; ++at) list += "S_";
  list += "EE12the_functionEv";
  const std::string cut = demangle(list);
  EXPECT_LE(cut.size(), kMaxNameBytes + 3);
  EXPECT_TRUE(cut.starts_with("bbbb")) << cut;
  EXPECT_NE(cut.find("…"), std::string::npos);
  EXPECT_TRUE(cut.ends_with("::the_function()")) << cut;
}

TEST(Demangle, CutsBetweenCharacters) {
  EXPECT_EQ(bounded_name("abc", 3), "abc");
  EXPECT_EQ(bounded_name("abcdef", 4), "ab…ef");
  EXPECT_EQ(bounded_name("aébébc", 4), "a…bc");
}

}  // namespace
}  // namespace ddprof
