#include "report/headline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_pattern.hpp"
#include "report/headline_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Fixture = HeadlineFixture;
using Kind = Headline::Kind;

TEST(Headline, NamesTheOwnFunctionBelowWrappersAndAboveLibraries) {
  Fixture fixture;
  fixture
      .add(
          "clone3!libc.so.6;void std::__invoke_impl<void, main::L>(L&&);shop::serve(int)@/b/shop.cpp:70;"
          "shop::is_blocked(shop::Order const&)@/b/shop.cpp:56;std::regex::regex();malloc!libc.so.6",
          800)
      .add(
          "clone3!libc.so.6;shop::serve(int)@/b/shop.cpp:70;"
          "shop::is_blocked(shop::Order const&)@/b/shop.cpp:57;free!libc.so.6;exit_path!kernel",
          90)
      .add("clone3!libc.so.6;shop::serve(int)@/b/shop.cpp:71;shop::render()@/b/shop.cpp:62", 110);
  EXPECT_EQ(fixture.text(), "89 % of CPU in shop::is_blocked (shop.cpp:56), called by shop::serve");
  const Headline headline = fixture.headline();
  EXPECT_EQ(headline.kind, Kind::one);
  ASSERT_EQ(headline.payers.size(), 2U);
  EXPECT_EQ(headline.payers[1].name, "shop::render()");
  EXPECT_EQ(headline.payers[0].value + headline.payers[1].value, headline.whole);
}

TEST(Headline, AFlatProfileIsCalledFlat) {
  Fixture fixture;
  for (int number = 0; number < 40; ++number)
    fixture.add("main@a.c:1;toplev::main()@a.c:5;run@a.c:9;f" + std::to_string(number) + "@a.c:20",
                10 + number % 2);
  EXPECT_EQ(fixture.headline().kind, Kind::spread);
  EXPECT_EQ(fixture.text(), "CPU is spread over 40 functions, the largest 3 % (f1); 100 % below run");
}

TEST(Headline, ThreeFunctionsWithHalfOfItAreNamed) {
  Fixture fixture;
  fixture.add("main;lex@l.c:1", 300)
      .add("main;parse@p.c:2", 290)
      .add("main;emit@e.c:3", 280)
      .add("main;rest", 130);
  EXPECT_EQ(fixture.text(), "30 % of CPU in lex (l.c:1), 29 % in parse (p.c:2), 28 % in emit (e.c:3)");
  // The first must be ahead by more than chance: 33 of 100 samples are not more than 30.
  Fixture few;
  few.add("main;lex", 33).add("main;parse", 30).add("main;emit", 30).add("main;rest", 7);
  EXPECT_EQ(few.headline().kind, Kind::several);
}

TEST(Headline, RecursionCountsOnceAndIsNotItsOwnCaller) {
  Fixture fixture;
  fixture.add("main@f.c:9;fib@f.c:3;fib@f.c:3;fib@f.c:2", 500).add("main@f.c:9;fib@f.c:3;fib@f.c:2", 500);
  EXPECT_EQ(fixture.text(), "100 % of CPU in fib (f.c:2), called by main");
}

TEST(Headline, WhatALibraryCostsIsItsCallers) {
  Fixture fixture;
  fixture.add("_start;main@x.c:7;deflate!libz.so.1;longest_match!libz.so.1", 950)
      .add("_start;main@x.c:8", 50);
  EXPECT_EQ(fixture.text(), "100 % of CPU in main (x.c:7), mostly in deflate (libz.so.1)");
}

TEST(Headline, WithoutOwnFramesItNamesTheLibrary) {
  Fixture fixture;
  fixture.add("clone3!libc.so.6;worker!liblzma.so.5;find_match!liblzma.so.5", 900)
      .add("clone3!libc.so.6;worker!liblzma.so.5", 60)
      .add("main", 40);
  EXPECT_EQ(fixture.headline().kind, Kind::library);
  EXPECT_EQ(fixture.text(),
            "96 % of CPU in liblzma.so.5, not called by the program's own code; 90 % in find_match");
}

TEST(Headline, AModuleWithoutSymbolsPaysAsOne) {
  Fixture fixture;
  for (int address = 0; address < 20; ++address) fixture.add("?;?;memcpy!libc.so.6", 10);
  EXPECT_EQ(fixture.text(), "100 % of CPU in app, which has no symbols, mostly in memcpy (libc.so.6)");
}

TEST(Headline, NamesThatWereMadeOfAddressesAreNone) {
  Fixture fixture;
  for (int address = 0; address < 20; ++address) fixture.add("app+0x" + std::to_string(1000 + address), 10);
  EXPECT_EQ(fixture.text(), "100 % of CPU in app, which has no symbols");
  Fixture with_main;
  with_main.add("_start;main;app+0x4290", 90).add("_start;main;app+0x4290;app+0x5000", 10);
  EXPECT_EQ(with_main.text(), "100 % of CPU in app, which has no symbols") << "its own main calls all of it";
  Fixture node;
  node.add("_start!/usr/bin/node;?!jit", 100);
  EXPECT_EQ(node.text(), "100 % of CPU in code of a JIT compiler, which has no names");
}

TEST(Headline, GoRuntimeAndStandardLibraryAreNotOwn) {
  Fixture fixture;
  fixture
      .add(
          "runtime.main@/usr/lib/go-1.19/src/runtime/proc.go:250;main.main@/srv/m.go:9;"
          "main.(*Store).Get@/srv/m.go:30;strings.Index@strings/strings.go:5;runtime.memmove@runtime/"
          "memmove.s:2",
          700)
      .add("runtime.mcall@runtime/asm.s:1;runtime.gcBgMarkWorker@runtime/mgc.go:2", 200)
      .add(
          "runtime.main@x/proc.go:250;main.main@/srv/m.go:9;github.com/a/b.F@/root/go/pkg/mod/github.com/a/b/"
          "b.go:1",
          100);
  EXPECT_EQ(fixture.text(), "70 % of CPU in main.(*Store).Get (m.go:30), called by main.main");
}

TEST(Headline, RustsLibrariesAreNotOwn) {
  Fixture fixture;
  fixture.add(
      "std::rt::lang_start;core::ops::function::FnOnce::call_once;shop::main@/srv/src/main.rs:4;"
      "shop::price@/srv/src/main.rs:20;<alloc::vec::Vec<T,A> as "
      "core::iter::Extend<T>>::extend@/rustc/1/vec.rs:9;"
      "hashbrown::map::insert@/root/.cargo/registry/src/x/hashbrown/map.rs:1",
      500);
  fixture.add(
      "shop::main@/srv/src/main.rs:6;shop::price@/srv/src/main.rs:20;<u32 as "
      "core::iter::range::Step>::forward@/x/range.rs:1",
      200);
  fixture.add(
      "shop::main@/srv/src/main.rs:6;shop::price@/srv/src/main.rs:20;next@/usr/src/rustc-1.63.0/library/core/"
      "src/iter/range.rs:1",
      200);
  fixture.add("shop::main@/srv/src/main.rs:5;<shop::Cart as core::fmt::Display>::fmt@/srv/src/cart.rs:8", 50);
  EXPECT_THAT(fixture.text(), StartsWith("95 % of CPU in shop::price (main.rs:20), called by shop::main"));
}

TEST(Headline, OfAnInterpreterJitFramesAreOwn) {
  Fixture node;
  node.add(
          "_start!/usr/bin/node;node::Start(int, char**)!/usr/bin/node;JS:*serve /srv/app.js:40:3!jit;"
          "JS:*hash /srv/app.js:12:9!jit;Builtins_StringAdd!/usr/bin/node",
          700)
      .add("_start!/usr/bin/node;node::Start(int, char**)!/usr/bin/node;JS:~emit node:events:500:3!jit", 300);
  EXPECT_EQ(node.text(),
            "70 % of CPU in hash (app.js:12), mostly in Builtins_StringAdd (node), called by serve");
}

TEST(Headline, AnInterpreterWithoutNamesOfItsOwnIsNamed) {
  Fixture python;
  python.add("Py_RunMain!/usr/bin/python3.11;_PyEval_EvalFrameDefault!/usr/bin/python3.11", 600)
      .add("Py_RunMain!/usr/bin/python3.11;PyDict_GetItem!/usr/bin/python3.11", 400);
  EXPECT_EQ(python.headline().kind, Kind::interpreter);
  EXPECT_EQ(python.text(), "100 % of CPU in the interpreter python3.11; 60 % in _PyEval_EvalFrameDefault");
  python.add(
      "Py_RunMain!/usr/bin/python3.11;"
      "dot!/home/u/site-packages/numpy/_multiarray.cpython-311-x86_64-linux-gnu.so;cblas!libblas.so.3",
      9000);
  EXPECT_THAT(python.text(), StartsWith("90 % of CPU in dot"));
}

TEST(Headline, TheKernelsShareNamesTheSystemCall) {
  Fixture fixture;
  fixture
      .add(
          "main@l.c:1;log_line@l.c:12;write!libc.so.6;do_syscall_64!kernel;__x64_sys_write!kernel;copy!"
          "kernel",
          500)
      .add("main@l.c:1;log_line@l.c:13;fsync!libc.so.6;do_syscall_64!kernel;__x64_sys_fsync!kernel", 100)
      .add("main@l.c:1;compute@l.c:40", 400);
  EXPECT_EQ(fixture.text(),
            "60 % of CPU in the kernel, 50 % in write, 60 % of all for log_line (l.c:12), called by main");
}

TEST(Headline, ASystemCallWithoutItsOwnFrameIsNamedByTheFunctionThatMadeIt) {
  Fixture fixture;
  fixture.add("main@d.c:1;copy@d.c:2;__GI___libc_read!libc.so.6;entry_SYSCALL_64!kernel", 900)
      .add("main@d.c:1;copy@d.c:2;read!libc.so.6;__x64_sys_read!kernel", 100);
  EXPECT_EQ(fixture.text(),
            "100 % of CPU in the kernel, 100 % in read, 100 % of all for copy (d.c:2), called by main");
}

TEST(Headline, WhatWasMissedLeadsWhenItIsMuch) {
  Fixture fixture;
  fixture.add("main;hot@h.c:3", 850).add("[unsampled: shorter than a sampling period]", 150);
  EXPECT_EQ(fixture.text(),
            "15 % of CPU has no whole stack (unsampled: shorter than a sampling period); 85 % in hot "
            "(h.c:3), "
            "called by main");
  Fixture little;
  little.add("main;hot@h.c:3", 950).add("[unsampled: shorter than a sampling period]", 50);
  EXPECT_EQ(little.text(), "95 % of CPU in hot (h.c:3), called by main");
  EXPECT_EQ(little.headline().missed, little.headline().whole / 20);
}

TEST(Headline, FewSamplesAreSaid) {
  EXPECT_EQ(Fixture().add("main;hot", 99).text(), "100 % of CPU in hot, called by main; only 99 samples");
  EXPECT_THAT(Fixture().add("main;hot", 100).text(), Not(HasSubstr("only")));
}

TEST(Headline, SeveralProcessesHaveOneEach) {
  Fixture fixture;
  fixture.add("main;parse!/usr/lib/gcc/cc1plus", 600, "cc1plus").add("main;link!/usr/bin/ld", 400, "ld");
  const std::vector<Headline> all = fixture.headlines();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(headline_text(all[0], spoken_name),
            "60 % of CPU in process cc1plus, 100 % of that in parse, called by main");
  EXPECT_EQ(all[1].process, "ld");
  // One that has nearly everything is all.
  fixture.add("main;parse!/usr/lib/gcc/cc1plus", 9000, "cc1plus");
  EXPECT_EQ(fixture.headlines().size(), 1U);
}

TEST(Headline, OtherTypesHaveTheirNoun) {
  EXPECT_THAT(Fixture("page-faults").add("main;hot", 100).text(), StartsWith("100 % of page faults in hot"));
  EXPECT_EQ(noun_of_type("cpu-cycles", 1, "count"), "CPU cycles");
  EXPECT_EQ(noun_of_type("alloc-space", 2048, "bytes"), "2.00 KiB allocated");
  EXPECT_EQ(noun_of_type("inuse_objects", 2048, "count"), "2,048 objects live");
}

TEST(Headline, OwnCanBeChosen) {
  Fixture fixture;
  fixture.add("main;deflate!libz.so.1;longest_match!libz.so.1", 100);
  const auto pattern = TextPattern::compile("libz");
  EXPECT_THAT(fixture.text(&*pattern), StartsWith("100 % of CPU in longest_match, called by deflate"));
}

TEST(Headline, NothingIsSaidOfNothingAndOfDifferences) {
  EXPECT_EQ(Fixture().add("main", 0).text(), "Nothing was sampled.");
  Fixture difference;
  difference.add("main;faster", -300).add("main;slower", 100);
  EXPECT_EQ(difference.text(), "");
  EXPECT_EQ(Fixture().add("[lost: ring buffer full]", 10).text(),
            "CPU has no stacks: lost: ring buffer full");
}

TEST(Headline, AShimForMemoryIsNoAnswer) {
  Fixture fixture;
  fixture.add("main;build@b.c:4;xmalloc@x.c:1;malloc!libc.so.6", 100);
  EXPECT_THAT(fixture.text(), StartsWith("100 % of CPU in build (b.c:4)"));
}

TEST(OwnCode, FindsTheScopeOfANameBehindItsReturnType) {
  EXPECT_EQ(qualified_name("void std::__invoke_impl<void, F>(F&&)"), "std::__invoke_impl");
  EXPECT_EQ(qualified_name("std::map<int, std::string>::at(int const&) const"), "std::map::at");
  EXPECT_EQ(qualified_name("(anonymous namespace)::run(int)"), "(anonymous namespace)::run");
  EXPECT_EQ(qualified_name("int (anonymous namespace)::run<int>(int)"), "(anonymous namespace)::run");
  EXPECT_EQ(qualified_name("bool ns::operator< <int>(ns::A<int>, ns::A<int>)"), "ns::operator<");
  EXPECT_EQ(qualified_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(qualified_name("ns::A::operator()(int) const"), "ns::A::operator()");
  EXPECT_EQ(qualified_name("decltype(auto) std::visit<F>(F&&)"), "std::visit");
  EXPECT_EQ(qualified_name("main"), "main");
  EXPECT_EQ(qualified_name("main.(*Store).Get"), "main.(*Store).Get");
  EXPECT_EQ(qualified_name(""), "");
}

TEST(OwnCode, NamesInSentencesLoseTheirArguments) {
  EXPECT_EQ(spoken_name("shop::render[abi:cxx11](shop::Order const&)"), "shop::render");
  EXPECT_EQ(spoken_name("ns::A::run(int) const [clone .isra.0]"), "ns::A::run");
  EXPECT_EQ(spoken_name("fill_buffers.constprop.0"), "fill_buffers");
  EXPECT_EQ(spoken_name("main.(*Store).Get"), "main.(*Store).Get");
  EXPECT_EQ(spoken_name("run(int)::{lambda(int)#1}::operator()(int) const"),
            "run(int)::{lambda(int)#1}::operator()(int) const");
}

TEST(OwnCode, TakesTheNamesOfJitCompilersApart) {
  const CodeName js = code_name("JS:*fib /srv/my dir/fib.js:1:13");
  EXPECT_EQ(js.name + "|" + js.file, "fib|/srv/my dir/fib.js");
  EXPECT_EQ(js.line, 1);
  EXPECT_EQ(code_name("LazyCompile:~ /srv/a.js:7:1").name, "(anonymous)");
  EXPECT_EQ(code_name("py::fib:/srv/fib.py").file, "/srv/fib.py");
  EXPECT_EQ(code_name("Lcom/shop/Cart;::add").name, "Lcom/shop/Cart;::add");
}

}  // namespace
}  // namespace ddprof
