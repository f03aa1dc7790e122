#include "session/frame_names.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "session/sample_printer.hpp"
#include "symbol/jit_dump_bytes.hpp"

namespace ddprof {
namespace {

const Pid kMe{::getpid()};

// Generated code of this process, and what it tells of it.
class FrameNamesTest : public testing::Test {
 protected:
  FrameNamesTest() : code_(files_.find_or_add_jit(kMe)) {}
  ~FrameNamesTest() override {
    std::filesystem::remove(map_path_);
    std::filesystem::remove_all(folder_);
  }

  void write_map(const std::string& text) { std::ofstream(map_path_) << text; }
  FileId add_dump(std::span<const std::byte> bytes) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/jit-7.dump", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return files_.find_or_open(kMe, {0x1000}, {0x2000}, {.path = folder_ + "/jit-7.dump"});
  }
  std::string name_at(std::uint64_t address, FrameNames& names) {
    return names.name({.file = code_, .address = address}, files_.file(code_).get()).readable;
  }

  std::string map_path_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::string folder_ = testing::TempDir() + "frame_names_test_" + std::to_string(::getpid());
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  FileId code_;
  FrameNames names_{true, ""};
};

TEST_F(FrameNamesTest, GeneratedCodeHasTheNamesOfThePerfMap) {
  write_map("1000 10 interpreted\n");
  EXPECT_EQ(name_at(0x1008, names_), "interpreted");
  EXPECT_EQ(name_at(0x1010, names_), "[anonymous code]+0x1010");
  EXPECT_EQ(names_.problem(code_), "");
}

TEST_F(FrameNamesTest, WithoutAPerfMapGeneratedCodeIsAnAddress) {
  EXPECT_EQ(name_at(0x1008, names_), "[anonymous code]+0x1008");
  EXPECT_EQ(names_.problem(code_), "") << "most processes have none";
}

// Code is made and thrown away all the time, but a list is read once for each period.
TEST_F(FrameNamesTest, APerfMapIsReadOnceForEachPeriod) {
  write_map("1000 10 first\n");
  EXPECT_EQ(name_at(0x1008, names_), "first");
  write_map("1000 10 second\n");
  EXPECT_EQ(name_at(0x1008, names_), "first");
  names_.trim(files_.files());
  EXPECT_EQ(name_at(0x1008, names_), "second");
}

TEST_F(FrameNamesTest, APerfMapLargerThanAWindowIsReadToItsEnd) {
  std::string text;
  for (std::uint64_t number = 0; number < 20'000; ++number)
    text += fmt::format("{:x} 10 function_{}\n", 0x10000 + number * 0x10, number);
  ASSERT_GT(text.size(), 256U << 10U);
  write_map(text + "1000 10 not_complete_ye");
  EXPECT_EQ(name_at(0x10000, names_), "function_0");
  EXPECT_EQ(name_at(0x10000 + 10'000 * 0x10, names_), "function_10000");
  EXPECT_EQ(name_at(0x10000 + 19'999 * 0x10, names_), "function_19999");
  EXPECT_EQ(name_at(0x1000, names_), "[anonymous code]+0x1000");
}

TEST_F(FrameNamesTest, AJitDumpComesBeforeAPerfMap) {
  write_map("1000 10 of_map\n2000 10 of_map_too\n");
  add_dump(JitDumpBytes().load(0x1000, "of_dump", 0x10, 1).bytes());
  EXPECT_EQ(name_at(0x1008, names_), "of_map") << "it is not known yet";
  names_.trim(files_.files());
  names_.use_dumps(files_.files());
  EXPECT_EQ(name_at(0x1008, names_), "of_dump");
  EXPECT_EQ(name_at(0x2008, names_), "of_map_too");
}

TEST_F(FrameNamesTest, ADumpOfAnotherProcessSaysNothing) {
  const FileId other = files_.find_or_add_jit(Pid{1 << 23});
  add_dump(JitDumpBytes().load(0x1000, "of_dump", 0x10, 1).bytes());
  names_.use_dumps(files_.files());
  EXPECT_EQ(names_.name({.file = other, .address = 0x1008}, files_.file(other).get()).readable,
            "[anonymous code]+0x1008");
}

TEST_F(FrameNamesTest, AProgramHasTheNamesOfItsSymbols) {
  const FileId program =
      files_.find_or_open(kMe, {}, {}, {.path = std::filesystem::read_symlink("/proc/self/exe")});
  const Frame entry{.file = program, .address = files_.file(program)->elf->entry()};
  const FrameNames::Name name = names_.name(entry, files_.file(program).get());
  EXPECT_EQ(name.readable, "_start");
  EXPECT_TRUE(name.is_symbol);
  FrameNames without(false, "");
  const FrameNames::Name place = without.name(entry, files_.file(program).get());
  EXPECT_EQ(place.readable, fmt::format("session_test+{:#x}", entry.address));
  EXPECT_FALSE(place.is_symbol);
}

TEST_F(FrameNamesTest, OtherFramesAreNamedByWhatTheyAre) {
  const auto name_of = [&](const Frame& frame) { return names_.name(frame, nullptr).readable; };
  EXPECT_EQ(name_of({.address = 0x77}), "[anonymous code]+0x77");
  EXPECT_EQ(name_of({.kind = FrameKind::kernel, .address = 0x77}), "[kernel]+0x77");
  EXPECT_EQ(name_of({.kind = FrameKind::stopped, .reason = StopReason::unknown_code}),
            "[truncated: unknown code]");
}

TEST_F(FrameNamesTest, ASampleIsALineFromItsLeafToItsRoot) {
  write_map("1000 10 leaf\n2000 10 root\n");
  ProcessTable processes(files_);
  processes.rename(Pid{1 << 23}, Tid{1 << 23}, "shop", true);
  const std::vector<Frame> frames{{.file = code_, .address = 0x1000}, {.file = code_, .address = 0x2000}};
  SampleEvent sample;
  sample.pid = Pid{1 << 23};
  sample.tid = Tid{1 << 23};
  sample.time = std::chrono::milliseconds(1500);
  sample.cpu = 3;
  sample.value = 10;
  EXPECT_EQ(sample_line(sample, {.frames = frames}, processes, files_, names_),
            "1.500000000 shop/8388608 shop/8388608 cpu=3 10: leaf < root\n");
  sample.pid = Pid{(1 << 23) + 1};
  EXPECT_EQ(sample_line(sample, {}, processes, files_, names_), "1.500000000 ?/8388609 /8388608 cpu=3 10:\n");
}

TEST_F(FrameNamesTest, ALineLongerThanAWindowCostsNoOther) {
  write_map("1000 10 before\n" + std::string(600U << 10U, 'x') + "\n2000 10 after\n");
  EXPECT_EQ(name_at(0x1000, names_), "before");
  EXPECT_EQ(name_at(0x2000, names_), "after");
}

}  // namespace
}  // namespace ddprof
