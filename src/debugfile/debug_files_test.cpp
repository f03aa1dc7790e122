#include "debugfile/debug_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "debugfile/debug_program_fixture.hpp"
#include "elf/debug_links.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

// Looks for the debug files of a program, as a profiler whose own root is another folder.
class Search {
 public:
  explicit Search(DebugProgram& program, const std::string& own_root = "/nonexistent", bool has_file = true)
      : finder_(opener_, {own_root, ""}),
        files_(finder_, Binary{has_file ? &program.file() : nullptr, program.build_id(),
                               std::string(DebugProgram::kPath), program.root()}) {}
  DebugFiles* operator->() { return &files_; }

 private:
  PatientOpener opener_{std::chrono::minutes(1)};
  DebugFileFinder finder_;
  DebugFiles files_;
};

TEST(DebugFiles, NeedsNoOtherFileForAProgramThatHasItAll) {
  DebugProgram program;
  Search found(program);
  EXPECT_EQ(found->separate(), nullptr);
  ASSERT_NE(found->with_debug_info(), nullptr);
  EXPECT_EQ(found->with_debug_info(), found->with_symbol_table());
  EXPECT_EQ(found->symbol_origin(), SymbolOrigin::itself);
  EXPECT_TRUE(found->missing().empty());
  EXPECT_EQ(found->problem(), "");
}

TEST(DebugFiles, FindsTheOneOfTheBuildIdFolder) {
  DebugProgram program;
  program.separate();
  program.move_to_build_id("program.debug");
  Search found(program);
  ASSERT_NE(found->separate(), nullptr);
  EXPECT_THAT(found->separate()->path, HasSubstr("/usr/lib/debug/.build-id/"));
  EXPECT_EQ(found->with_debug_info(), &found->separate()->file);
  EXPECT_EQ(found->symbol_origin(), SymbolOrigin::separate);
  EXPECT_EQ(found->problem(), "");
}

TEST(DebugFiles, FindsTheOneInOurOwnBuildIdFolder) {
  DebugProgram program;
  program.separate();
  program.move_to_build_id("program.debug");
  program.folder().run("mkdir -p own/usr/lib && mv root/usr/lib/debug own/usr/lib/");
  Search found(program, program.folder().path("own"));
  ASSERT_NE(found->separate(), nullptr);
  EXPECT_EQ(found->separate()->root, program.folder().path("own"));
}

TEST(DebugFiles, FindsItByBuildIdWhenTheProgramItselfIsGone) {
  DebugProgram program;
  program.separate();
  program.move_to_build_id("program.debug");
  Search found(program, "/nonexistent", false);
  EXPECT_NE(found->with_debug_info(), nullptr);
  EXPECT_EQ(found->symbol_origin(), SymbolOrigin::separate);
}

TEST(DebugFiles, FollowsTheDebugLinkToEachOfItsPlaces) {
  for (const std::string place : {".", ".debug", "../../usr/lib/debug/opt/app"}) {
    DebugProgram program;
    program.separate();
    program.in_app("mkdir -p " + place + " && mv program.debug elsewhere && mv elsewhere " + place +
                   "/program.debug");
    Search found(program);
    ASSERT_NE(found->separate(), nullptr) << place;
    EXPECT_NE(found->with_debug_info(), nullptr) << place;
    EXPECT_EQ(found->problem(), "") << place;
  }
}

TEST(DebugFiles, RefusesAFileOfAnotherBuildAndSaysSo) {
  DebugProgram program;
  DebugProgram other("-g", 2);
  program.separate();
  other.separate();
  program.in_app("cp '" + other.root() + "/opt/app/program.debug' .");
  Search linked(program);
  EXPECT_EQ(linked->with_debug_info(), nullptr);
  EXPECT_THAT(linked->problem(), HasSubstr("/opt/app/program.debug belongs to another build"));
  ASSERT_EQ(linked->missing().size(), 1U);
  EXPECT_EQ(linked->missing()[0], program.build_id());

  program.move_to_build_id("program.debug");
  Search by_build_id(program);
  EXPECT_EQ(by_build_id->separate(), nullptr);
  EXPECT_THAT(by_build_id->problem(), HasSubstr("belongs to another build"));
}

TEST(DebugFiles, HoldsFilesWithoutBuildIdsToTheChecksum) {
  DebugProgram program("-g -Wl,--build-id=none");
  program.separate();
  Search right(program);
  EXPECT_NE(right->with_debug_info(), nullptr);
  program.in_app("echo more >>program.debug");
  Search changed(program);
  EXPECT_EQ(changed->with_debug_info(), nullptr);
  EXPECT_THAT(changed->problem(), HasSubstr("has another checksum"));
}

TEST(DebugFiles, SkipsALinkOfAProgramToItself) {
  DebugProgram program;
  program.in_app("strip -g program && cp program self && objcopy --add-gnu-debuglink=self program");
  program.in_app("rm self && ln program self");
  Search found(program);
  EXPECT_EQ(found->separate(), nullptr);
  EXPECT_EQ(found->symbol_origin(), SymbolOrigin::itself);
  EXPECT_EQ(found->problem(), "");
}

TEST(DebugFiles, RefusesLinksThatArePaths) {
  for (const std::string name : {"../app/program.debug", "/opt/app/program.debug"}) {
    DebugProgram program;
    program.separate();
    const DebugLink link = *find_debug_link(program.file());
    const std::string padding((4 - (name.size() + 1) % 4) % 4 + 1, '\0');
    program.folder().write("section",
                           name + padding + std::string(reinterpret_cast<const char*>(&link.checksum), 4));
    program.in_app("objcopy --remove-section .gnu_debuglink program");
    program.in_app("objcopy --add-section .gnu_debuglink=../../../section program");
    Search found(program);
    EXPECT_EQ(found->separate(), nullptr) << name;
    EXPECT_THAT(found->problem(), HasSubstr("refused")) << name;
  }
}

TEST(DebugFiles, DoesNotFollowLinksOutOfTheRootOfTheTarget) {
  DebugProgram program;
  program.separate();
  program.in_app("mv program.debug ../../../outside && ln -s '" + program.folder().path("outside") +
                 "' program.debug");
  Search found(program);
  EXPECT_EQ(found->separate(), nullptr);
}

TEST(DebugFiles, LooksForNamesOfAFileBelowItsOwnRootAlone) {
  DebugProgram program;
  program.separate();
  program.in_app("mkdir -p ../../../own/opt/app && mv program.debug ../../../own/opt/app/");
  Search found(program, program.folder().path("own"));
  EXPECT_EQ(found->separate(), nullptr);
  EXPECT_EQ(found->split_unit("/opt/app", "program.debug"), nullptr);
}

TEST(DebugFiles, BelievesNothingThatAnotherUserCouldHaveWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "files can be given away by root only";
  DebugProgram program;
  program.separate();
  program.in_app("chown 61001 program.debug");
  Search refused(program);
  EXPECT_EQ(refused->separate(), nullptr);
  EXPECT_THAT(refused->problem(),
              HasSubstr("program.debug refused: it is not of the owner of /opt/app/program"));
  program.in_app("chown 0 program.debug && chmod 666 program.debug");
  Search open_to_all(program);
  EXPECT_EQ(open_to_all->separate(), nullptr);
}

TEST(DebugFiles, OfAnotherUserAreOpenedWithTheRightsOfThatUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  DebugProgram program;
  program.separate();
  program.folder().run("chmod 755 . root root/opt root/opt/app && chown -R 61001 root/opt/app");
  PatientOpener opener(std::chrono::minutes(1));
  DebugFileFinder finder(opener, {"/nonexistent", ""});
  const auto search = [&] {
    return DebugFiles(finder, Binary{.file = &program.file(),
                                     .build_id = program.build_id(),
                                     .path = std::string(DebugProgram::kPath),
                                     .root = program.root(),
                                     .owner = 61001,
                                     .rights = rights_of_user(61001)})
               .separate() != nullptr;
  };
  EXPECT_TRUE(search());
  program.in_app("chown 0 program.debug && chmod 600 program.debug");
  EXPECT_FALSE(search());
  program.in_app("chmod 644 program.debug");  // what root lets everybody read
  EXPECT_TRUE(search());
}

TEST(DebugFiles, IsNotHeldUpByWhatIsNoFile) {
  DebugProgram program;
  program.separate();
  program.in_app("rm program.debug && mkfifo program.debug && mkdir -p .debug/program.debug");
  Search found(program);
  EXPECT_EQ(found->separate(), nullptr);
}

TEST(DebugFiles, SaysWhichDebugFileIsNoElfFile) {
  DebugProgram program;
  program.separate();
  program.in_app("echo rubbish >program.debug");
  Search found(program);
  EXPECT_EQ(found->separate(), nullptr);
  EXPECT_THAT(found->problem(), HasSubstr("program.debug: parse ELF"));
}

TEST(DebugFiles, TakesFunctionNamesFromMiniDebugInfo) {
  DebugProgram program;
  program.in_app("objcopy -S --keep-symbol=helper program mini && xz mini && strip program");
  program.in_app("objcopy --add-section .gnu_debugdata=mini.xz program && rm mini.xz");
  Search found(program);
  ASSERT_NE(found->with_symbol_table(), nullptr);
  EXPECT_EQ(found->symbol_origin(), SymbolOrigin::mini_debug_info);
  EXPECT_GT(found->memory_bytes(), 0U);
  bool has_helper = false;
  found->with_symbol_table()->for_each_symbol(
      SymbolTableKind::symtab, [&](const ElfSymbol& symbol) { has_helper |= symbol.name == "helper"; });
  EXPECT_TRUE(has_helper);
}

// dwz moves what two programs share to a third file; where that is, and what the link says.
class Supplementary : public testing::Test {
 protected:
  void link(const std::string& recorded, const std::string& options = "") {
    program_.in_app("cp program second && dwz " + options + " -m common.debug -M '" + recorded +
                    "' program second && rm second");
    link_ = *find_supplementary_link(program_.file());
  }
  const ElfFile* find(DebugFiles& files) { return files.supplementary(link_.path, link_.build_id); }

  DebugProgram program_;
  SupplementaryLink link_;
};

TEST_F(Supplementary, IsFoundRelativeToTheFileWithTheLink) {
  link("../shared/common.debug");
  program_.in_app("mkdir ../shared && mv common.debug ../shared/");
  Search found(program_);
  const ElfFile* file = find(*found.operator->());
  ASSERT_NE(file, nullptr) << found->problem();
  EXPECT_EQ(file->build_id(), link_.build_id);
  EXPECT_EQ(find(*found.operator->()), file);  // once is enough
}

TEST_F(Supplementary, IsFoundWhereAnAbsoluteLinkLeadsBelowTheRoot) {
  link("/srv/common.debug");
  program_.in_app("mkdir ../../srv && mv common.debug ../../srv/");
  Search found(program_);
  EXPECT_NE(find(*found.operator->()), nullptr) << found->problem();
}

TEST_F(Supplementary, OfDwarf5IsKnownByItsOwnSection) {
  link("common.debug", "--dwarf-5");
  Search found(program_);
  EXPECT_NE(find(*found.operator->()), nullptr) << found->problem();
}

TEST_F(Supplementary, IsFoundInTheFoldersOfTheSystem) {
  link("/gone/common.debug");
  program_.in_app("mkdir -p ../../usr/lib/debug/.dwz && mv common.debug ../../usr/lib/debug/.dwz/");
  Search in_dwz(program_);
  EXPECT_NE(find(*in_dwz.operator->()), nullptr);
  const std::string hex = link_.build_id.hex();
  program_.in_app("cd ../../usr/lib/debug && mkdir -p .build-id/" + hex.substr(0, 2) +
                  " && mv .dwz/common.debug .build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug");
  Search by_build_id(program_);
  EXPECT_NE(find(*by_build_id.operator->()), nullptr);
}

TEST_F(Supplementary, OfAnotherBuildIsRefusedAndAskedFor) {
  link("common.debug");
  program_.in_app("cp program common.debug");
  Search found(program_);
  EXPECT_EQ(find(*found.operator->()), nullptr);
  EXPECT_THAT(found->problem(), HasSubstr("belongs to another build"));
  EXPECT_THAT(found->missing(), testing::ElementsAre(link_.build_id));
  EXPECT_EQ(found->supplementary("common.debug", BuildId()), nullptr);
}

TEST(SplitUnits, AreFoundWhereTheyWereCompiledAndBesideTheProgram) {
  DebugProgram program("-g -gsplit-dwarf");
  const std::string name = "program.dwo";
  Search found(program);
  EXPECT_NE(found->split_unit("/opt/app", name), nullptr);
  EXPECT_NE(found->split_unit("/nowhere", "/opt/app/" + name), nullptr);
  EXPECT_NE(found->split_unit("/build/of/somebody", name), nullptr);
  EXPECT_NE(found->split_unit("/x", "/somewhere/else/" + name), nullptr);
  EXPECT_EQ(found->split_unit("/opt/app", "absent.dwo"), nullptr);
  EXPECT_EQ(found->split_unit("", ""), nullptr);
}

TEST(SplitUnits, ComeAsAPackageToo) {
  DebugProgram program("-g -gdwarf-4 -gsplit-dwarf");  // Debian 12's dwp does not survive version 5
  {
    Search found(program);
    EXPECT_EQ(found->package(), nullptr);
  }
  program.in_app("dwp -e program -o program.dwp");
  Search found(program);
  ASSERT_NE(found->package(), nullptr);
  EXPECT_TRUE(found->package()->find_section(".debug_cu_index").has_value());

  program.separate();
  program.in_app("mv program.dwp program.debug.dwp");
  Search beside_debug_file(program);
  EXPECT_NE(beside_debug_file->package(), nullptr);
}

}  // namespace
}  // namespace ddprof
