#include "session/jit_tables.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "symbol/jit_dump_bytes.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kJitted = 0x10000000;
constexpr std::uint32_t kJitUser = 1;
const Pid kSelf{static_cast<Pid>(::getpid())};

// A CIE and an FDE for code of 0x20 bytes that begins 0x20 bytes before them: CFA is rsp+8, then rsp+16.
std::string pushing_frames() {
  constexpr unsigned char kBytes[] = {0x14, 0,    0,    0,    0, 0,    0,    0, 1,    'z',  'R',
                                      0,    1,    0x78, 16,   1, 0x1b, 0x0c, 7, 8,    0x90, 1,
                                      0,    0,    0x10, 0,    0, 0,    0x1c, 0, 0,    0,    0xc0,
                                      0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0, 0x41, 0x0e, 16};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

class JitTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ddprof_jit_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = std::filesystem::absolute(name);
    write({});
    dump_ = files_.find_or_open(kSelf, {0x1000}, {0x2000}, {.path = path()});
    ASSERT_EQ(files_.file(dump_)->kind, CodeFile::Kind::jit_dump) << files_.file(dump_)->problem;
    code_ = files_.find_or_add_jit(kSelf);
    tables_.add(code_, dump_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "jit-7.dump"; }
  void write(std::span<const std::byte> bytes) {
    std::ofstream(path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  // A time at which it may look again, whatever the last look took.
  Nanoseconds later() { return time_ += std::chrono::hours(1); }
  std::int32_t cfa_at(std::uint64_t address) {
    const UnwindTable* table = tables_.table(code_);
    return table != nullptr ? rules_[table->find(address)].cfa_offset : 0;
  }

  std::filesystem::path folder_;
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  RuleDictionary rules_;
  FileThreads threads_{{.most_waiting = std::chrono::minutes(2)}};
  JitTables tables_{files_, threads_, rules_};
  FileId dump_{};
  FileId code_{};
  Nanoseconds time_{};
};

TEST_F(JitTablesTest, FollowsADumpThatGrows) {
  EXPECT_FALSE(tables_.refresh(code_, kJitUser, time_));
  EXPECT_EQ(tables_.table(code_), nullptr);
  JitDumpBytes dump;
  dump.unwinding(pushing_frames(), 0).load(kJitted, "first", 0x20, 1);
  write(dump.bytes());
  EXPECT_TRUE(tables_.refresh(code_, kJitUser, later()));
  EXPECT_EQ(cfa_at(kJitted), 8);
  EXPECT_EQ(cfa_at(kJitted + 0x1f), 16);
  EXPECT_FALSE(tables_.refresh(code_, kJitUser, later())) << "nothing was added";
  dump.move(kJitted, kJitted + 0x1000, 0x20, 1);
  write(dump.bytes());
  EXPECT_FALSE(tables_.refresh(code_, kJitUser, time_)) << "too soon";
  EXPECT_TRUE(tables_.refresh(code_, kJitUser, later()));
  EXPECT_EQ(cfa_at(kJitted + 0x1001), 16);
  EXPECT_EQ(cfa_at(kJitted + 1), 16);
}

TEST_F(JitTablesTest, KeepsWhatWasReadOfADumpThatBreaks) {
  JitDumpBytes dump;
  dump.unwinding(pushing_frames(), 0).load(kJitted, "first", 0x20, 1);
  std::string text(reinterpret_cast<const char*>(dump.bytes().data()), dump.size());
  text.append(32, '\1').replace(dump.size() + 4, 4, std::string("\3\0\0\0", 4));
  write(std::as_bytes(std::span(text)));
  EXPECT_TRUE(tables_.refresh(code_, kJitUser, Nanoseconds(0)));
  EXPECT_EQ(cfa_at(kJitted + 1), 16);
  EXPECT_FALSE(tables_.refresh(code_, kJitUser, later()));
}

TEST_F(JitTablesTest, WhatTakesTooLongIsThereLater) {
  JitDumpBytes dump;
  dump.unwinding(pushing_frames(), 0).load(kJitted, "first", 0x20, 1);
  write(dump.bytes());
  FileThreads threads({.most_waiting = Nanoseconds(0)});
  JitTables tables(files_, threads, rules_);
  tables.add(code_, dump_);
  while (!tables.refresh(code_, kJitUser, Nanoseconds(0))) {
    EXPECT_EQ(tables.table(code_), nullptr);
  }
  EXPECT_NE(tables.table(code_), nullptr);
}

TEST_F(JitTablesTest, ForgetsWhatNobodyAsksFor) {
  EXPECT_FALSE(tables_.forget_unused());
  EXPECT_TRUE(tables_.forget_unused());
  EXPECT_FALSE(tables_.refresh(code_, kJitUser, Nanoseconds(0)));
}

TEST_F(JitTablesTest, ReadsALargeDumpAndStartsAnewWhenItWasReplaced) {
  JitDumpBytes dump;
  for (std::uint64_t i = 0; i < 5; ++i) dump.load(kJitted + i * 0x1000000, "large", 0x200000, i);
  write(dump.bytes());
  JitDump whole;
  EXPECT_TRUE(read_growth(*files_.file(dump_)->dump, whole).value());
  EXPECT_EQ(whole.offset(), dump.size());
  EXPECT_EQ(whole.size(), 5U);
  write(JitDumpBytes().load(kJitted, "anew", 0x10, 1).bytes());
  EXPECT_TRUE(read_growth(*files_.file(dump_)->dump, whole).value());
  EXPECT_EQ(whole.size(), 1U);
}

}  // namespace
}  // namespace ddprof
