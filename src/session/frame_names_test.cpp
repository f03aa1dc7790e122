#include "session/frame_names.hpp"

#include <elf.h>
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "session/sample_printer.hpp"
#include "symbol/jit_dump_bytes.hpp"

// Code of some bytes, with unwind information.
extern "C" __attribute__((noinline, used)) int ddprof_frame_names_function(int value) {
  return value * value + 3;
}

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
  names_.use_generated_code(files_.files(), {});
  EXPECT_EQ(name_at(0x1008, names_), "of_dump");
  EXPECT_EQ(name_at(0x2008, names_), "of_map_too");
}

TEST_F(FrameNamesTest, ADumpOfAnotherProcessSaysNothing) {
  const FileId other = files_.find_or_add_jit(Pid{1 << 23});
  add_dump(JitDumpBytes().load(0x1000, "of_dump", 0x10, 1).bytes());
  names_.use_generated_code(files_.files(), {});
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

// The bytes of this program without its section headers: no symbol is left.
std::string stripped_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST_F(FrameNamesTest, StrippedCodeIsCalledByWhereItsFunctionBegins) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/program", std::ios::binary) << stripped_program();
  const FileId stripped = files_.find_or_open(kMe, {}, {}, {.path = folder_ + "/program"});
  ASSERT_TRUE(files_.file(stripped)->elf) << files_.file(stripped)->problem;
  std::optional<ElfSymbol> function, main;
  FileRegistry others(provider_);  // by its build id it would be the same file
  const FileId whole =
      others.find_or_open(kMe, {}, {}, {.path = std::filesystem::read_symlink("/proc/self/exe")});
  others.file(whole)->elf->for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
    if (symbol.name == "ddprof_frame_names_function") function = symbol;
    if (symbol.name == "main") main = symbol;
  });
  ASSERT_TRUE(function && main);
  const auto name = [&](std::uint64_t address) {
    return names_.name({.file = stripped, .address = address}, files_.file(stripped).get());
  };
  const std::string place = fmt::format("program+{:#x}", function->value);
  EXPECT_EQ(name(function->value).readable, place);
  EXPECT_EQ(name(function->value + function->size - 1).readable, place);
  EXPECT_EQ(name(function->value + 1).linker, place);
  EXPECT_FALSE(name(function->value).is_symbol) << "it still has no name";
  EXPECT_EQ(name(main->value + 1).readable, "main");
  EXPECT_EQ(name(files_.file(stripped)->elf->entry()).readable, "_start");
  names_.trim(files_.files());
  EXPECT_EQ(name(function->value + 2).readable, place);
  EXPECT_EQ(FrameNames(false, "")
                .name({.file = stripped, .address = function->value + 1}, files_.file(stripped).get())
                .readable,
            fmt::format("program+{:#x}", function->value + 1));
}

// Return addresses of the calling thread, root last.
std::vector<void*> roots_of_this_thread(std::size_t count) {
  std::vector<void*> addresses(64);
  addresses.resize(static_cast<std::size_t>(::backtrace(addresses.data(), 64)));
  addresses.erase(addresses.begin(),
                  addresses.end() - static_cast<std::ptrdiff_t>(std::min(count, addresses.size())));
  return addresses;
}

TEST_F(FrameNamesTest, TheRootsOfThreadsHaveTheirNamesWithoutSymbols) {
  const auto name = [&](const void* return_address) {
    Dl_info info{};
    link_map* map = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(return_address) - 1;
    ::dladdr1(reinterpret_cast<const void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
    const FileId file =
        files_.find_or_open(kMe, {}, {}, {.path = std::filesystem::canonical(info.dli_fname)});
    return names_.name({.file = file, .address = address - map->l_addr}, files_.file(file).get()).readable;
  };
  std::vector<void*> thread;
  std::thread([&] { thread = roots_of_this_thread(2); }).join();
  ASSERT_EQ(thread.size(), 2U);
  EXPECT_EQ(name(thread[0]), "start_thread");
  EXPECT_THAT(name(thread[1]), testing::EndsWith("clone3"));
  const std::vector<void*> program = roots_of_this_thread(3);
  ASSERT_EQ(program.size(), 3U);
  EXPECT_EQ(name(program[0]), "__libc_start_call_main");
}

TEST_F(FrameNamesTest, GeneratedCodeWithoutNamesIsOneWithItsMapping) {
  write_map("1000 10 listed\n");
  const FileId other = files_.find_or_add_jit(Pid{1 << 23});
  const std::vector<CodeMapping> mappings{{.start = {0x3000}, .end = {0x4000}, .file = code_},
                                          {.start = {0x1000}, .end = {0x2000}, .file = code_},
                                          {.start = {0x2000}, .end = {0x3000}, .file = other}};
  names_.use_generated_code(files_.files(), mappings);
  EXPECT_EQ(name_at(0x1008, names_), "listed");
  EXPECT_EQ(name_at(0x1010, names_), "[anonymous code]+0x1000");
  EXPECT_EQ(name_at(0x1fff, names_), "[anonymous code]+0x1000");
  EXPECT_EQ(name_at(0x2008, names_), "[anonymous code]+0x2008") << "another process has code there";
  EXPECT_EQ(name_at(0x3456, names_), "[anonymous code]+0x3000");
  EXPECT_EQ(name_at(0x4000, names_), "[anonymous code]+0x4000");
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
