#include "session/code_index.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <utility>

namespace ddprof {
namespace {

// Our own program, when the test lets it be opened.
class LateProgram final : public FileProvider {
 public:
  explicit LateProgram(std::string path = "/proc/self/exe") : path_(std::move(path)) {}

  Open prepare(const MappedFile& file) override {
    return [file, path = path_, opened = gate_.get_future().share()]() -> Result<CodeImage> {
      opened.wait();
      const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      return CodeImage{.path = file.identity.path, .region = TRY(MappedRegion::map_file(fd.get()))};
    };
  }
  void let_go() { gate_.set_value(); }

 private:
  std::string path_;
  std::promise<void> gate_;
};

// With less unwind information than what is read by windows: this program has more, with sanitizers.
std::string path_of_libc() {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<const void*>(&::gnu_get_libc_version), &info) != 0 ? info.dli_fname : "";
}

TEST(CodeIndex, AFrameOfAFileThatIsNotOpenYetIsSettledLater) {
  constexpr std::uint64_t kStart = 0x10000000;
  LateProgram provider;
  FileThreads threads({.most_waiting = Nanoseconds(0)});
  FileRegistry files(provider, &threads);
  ProcessTable processes(files);
  CodeIndex code(files, threads);
  const Pid pid{1 << 23};
  processes.map(pid, {kStart}, 1 << 20, 0x1000, {.path = "/late", .inode = 1});
  const Process& process = *processes.find(pid);

  const Module early = *code.modules(process).find({kStart + 16});
  EXPECT_EQ(early.table, nullptr);
  EXPECT_TRUE(code.is_unread(early.file));
  EXPECT_EQ(early.elf_address(kStart + 16), 0x1010U) << "the offset in the file";
  Aggregator aggregator(std::vector<Column>{{"samples", "count"}});
  const auto sample_in = [&](const Module& module) {
    const std::array frames = {Frame{.file = module.file, .address = module.elf_address(kStart + 16)}};
    aggregator.add({.pid = pid}, frames, {{0, 1}});
  };
  sample_in(early);

  provider.let_go();
  threads.wait_for(std::chrono::minutes(1), [&] { return threads.finished() > 0; });
  while (code.is_unread(files.resolved(early.file))) {  // until it is compiled too
    static_cast<void>(code.modules(process));
    ::usleep(1000);
  }
  const Module late = *code.modules(process).find({kStart + 16});
  EXPECT_NE(late.file, early.file);
  EXPECT_NE(late.table, nullptr);
  EXPECT_EQ(late.elf_address(kStart + 16), files.file(late.file)->elf_address(0x1010).value_or(0x1010));
  sample_in(late);

  AggregatedProfile profile = aggregator.take({}, {});
  ASSERT_EQ(profile.samples.size(), 2U);
  code.settle(profile);
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_EQ(profile.frames[0].file, late.file);
  EXPECT_EQ(profile.sample_values(0)[0], 2);
  ASSERT_EQ(code.representatives().size(), 1U);
  EXPECT_EQ(code.representatives()[0].file, late.file);
  EXPECT_EQ(code.representatives()[0].bias, late.bias);
}

TEST(CodeIndex, SaysOfWhichFilesUnwindInformationIsTooLarge) {
  constexpr std::uint64_t kStart = 0x10000000;
  LateProgram provider(path_of_libc());
  provider.let_go();
  FileThreads threads({.most_waiting = std::chrono::minutes(2), .patience = std::chrono::minutes(2)});
  FileRegistry files(provider, &threads);
  ProcessTable processes(files);
  CodeIndex code(files, threads, {.limits = {1024}});
  const Pid pid{1 << 23};
  processes.map(pid, {kStart}, 1 << 20, 0x1000, {.path = "/large", .inode = 1});
  EXPECT_TRUE(code.problems().empty());
  const Module module = *code.modules(*processes.find(pid)).find({kStart + 16});
  EXPECT_TRUE(code.is_unread(module.file));
  ASSERT_EQ(code.problems().size(), 1U);
  EXPECT_EQ(code.problems()[0], "/large: unwind information: too large to read with --max-memory 0");
}

TEST(CodeIndex, GeneratedCodeHasARepresentativeForEachMappingThatGrowsWithIt) {
  LateProgram provider;
  FileThreads threads({.most_waiting = Nanoseconds(0)});
  FileRegistry files(provider, &threads);
  ProcessTable processes(files);
  CodeIndex code(files, threads);
  const Pid pid{1 << 23};
  const auto map = [&](std::uint64_t start, std::uint64_t size) {
    processes.map(pid, {start}, size, 0, {.path = "//anon"});
    static_cast<void>(code.modules(*processes.find(pid)));
  };
  map(0x10000, 0x1000);
  map(0x20000, 0x1000);
  map(0x10000, 0x3000);
  const auto mappings = code.representatives();
  ASSERT_EQ(mappings.size(), 2U);
  EXPECT_EQ(mappings[0].start, Address{0x10000});
  EXPECT_EQ(mappings[0].end, Address{0x13000});
  EXPECT_EQ(mappings[1].start, Address{0x20000});
}

}  // namespace
}  // namespace ddprof
