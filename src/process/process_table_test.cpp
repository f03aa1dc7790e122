#include "process/process_table.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/executed_child_fixture.hpp"

// A function whose ELF address the symbol table tells.
extern "C" __attribute__((noinline, used)) int ddprof_process_test_landmark() { return 7; }

namespace ddprof {
namespace {

using namespace std::chrono_literals;

// Refuses every file and remembers what it was asked for.
class NoFiles final : public FileProvider {
 public:
  Open prepare(const MappedFile& file) override {
    asked.push_back(file.identity.path);
    return [file]() -> Result<CodeImage> {
      return make_error(ErrorCode::not_found, "open {}: not in this test", file.identity.path);
    };
  }
  std::vector<std::string> asked;
};

class ProcessTableTest : public ::testing::Test {
 protected:
  void map(Pid pid, std::uint64_t start, std::string path, std::uint64_t inode = 1) {
    table.map(pid, {start}, 0x1000, 0, {.path = std::move(path), .inode = inode});
  }

  NoFiles provider;
  FileRegistry files{provider};
  ProcessTable table{files};
  // Above any pid_max: /proc has nothing about them.
  const Pid parent{1 << 23};
  const Pid child{(1 << 23) + 1};
};

TEST_F(ProcessTableTest, AForkedProcessSharesTheAddressSpaceUntilItMapsSomething) {
  map(parent, 0x1000, "/a");
  table.fork(child, parent, Tid{to_int(child)}, Tid{to_int(parent)});
  EXPECT_EQ(table.find(child)->generation, table.find(parent)->generation);
  EXPECT_EQ(table.find(child)->space, table.find(parent)->space);

  map(child, 0x5000, "/b", 2);
  EXPECT_NE(table.find(child)->generation, table.find(parent)->generation);
  EXPECT_EQ(table.find(parent)->space->find({0x5000}), nullptr);
  EXPECT_NE(table.find(child)->space->find({0x5000}), nullptr);
  EXPECT_NE(table.find(child)->space->find({0x1000}), nullptr);
}

TEST_F(ProcessTableTest, ExecForgetsMappingsAndTakesTheNewName) {
  map(parent, 0x1000, "/a");
  table.rename(parent, Tid{to_int(parent)}, "new", true);
  EXPECT_EQ(table.find(parent)->name, "new");
  EXPECT_EQ(table.find(parent)->space->find({0x1000}), nullptr);
}

TEST_F(ProcessTableTest, TheVdsoOfA32BitProcessIsAnotherOne) {
  map(parent, 0x7ffd00001000, "[vdso]");
  map(parent, 0xf7fd1000, "[vdso]");
  const FileId low = table.find(parent)->space->find({0xf7fd1000})->file;
  EXPECT_EQ(table.find(parent)->space->find({0x7ffd00001000})->file, files.vdso());
  EXPECT_NE(low, files.vdso());
  EXPECT_EQ(files.file(low)->path, "[vdso]");
}

TEST_F(ProcessTableTest, TheProgramIsTheFirstFileThatIsMapped) {
  table.rename(parent, Tid{to_int(parent)}, "program", true);
  map(parent, 0x1000, "[vdso]");
  map(parent, 0x2000, "//anon");
  EXPECT_EQ(table.find(parent)->program, FileId::none);
  map(parent, 0x9000, "/bin/program");
  map(parent, 0x3000, "/lib/ld.so", 2);
  const FileId program = table.find(parent)->space->find({0x9000})->file;
  EXPECT_EQ(table.find(parent)->program, program);
  table.fork(child, parent, Tid{to_int(child)}, Tid{to_int(parent)});
  EXPECT_EQ(table.find(child)->program, program);

  table.rename(child, Tid{to_int(child)}, "other", true);
  map(child, 0x5000, "/bin/other", 3);
  EXPECT_EQ(table.find(child)->program, table.find(child)->space->find({0x5000})->file);
  EXPECT_EQ(table.names(child, Tid{to_int(child)}, 0).program, program);  // before its exec
}

TEST_F(ProcessTableTest, AThreadInheritsItsParentsNameUntilItIsRenamed) {
  table.rename(parent, Tid{to_int(parent)}, "main", true);
  table.fork(parent, parent, Tid{77}, Tid{to_int(parent)});
  EXPECT_EQ(table.thread_name(parent, Tid{77}), "main");
  table.rename(parent, Tid{77}, "worker", false);
  EXPECT_EQ(table.thread_name(parent, Tid{77}), "worker");
  EXPECT_EQ(table.find(parent)->name, "main");
}

TEST_F(ProcessTableTest, EndedTasksKeepTheirNamesUntilThePeriodCloses) {
  table.rename(parent, Tid{to_int(parent)}, "main", true);
  table.fork(parent, parent, Tid{77}, Tid{to_int(parent)});
  table.rename(parent, Tid{77}, "worker", false);
  table.exit(parent, Tid{77});
  EXPECT_EQ(table.thread_name(parent, Tid{77}), "worker");
  table.forget_ended();
  ASSERT_NE(table.find(parent), nullptr);
  EXPECT_FALSE(table.find(parent)->threads.contains(77));

  table.exit(parent, Tid{to_int(parent)});
  EXPECT_NE(table.find(parent), nullptr);
  table.forget_ended();
  EXPECT_EQ(table.find(parent), nullptr);
}

TEST_F(ProcessTableTest, OpensAFileOnceForAllProcesses) {
  map(parent, 0x1000, "/a", 7);
  map(child, 0x9000, "/a", 7);
  EXPECT_EQ(provider.asked, std::vector<std::string>{"/a"});
  EXPECT_EQ(table.find(parent)->space->find({0x1000})->file, table.find(child)->space->find({0x9000})->file);
}

TEST_F(ProcessTableTest, AnonymousCodeBelongsToItsProcess) {
  map(parent, 0x1000, "//anon");
  map(child, 0x1000, "");
  FileId first = table.find(parent)->space->find({0x1000})->file;
  FileId second = table.find(child)->space->find({0x1000})->file;
  EXPECT_NE(first, second);
  EXPECT_EQ(files.file(first)->kind, CodeFile::Kind::jit);
  EXPECT_TRUE(provider.asked.empty());
}

TEST_F(ProcessTableTest, FilesThatNoProcessMapsAreForgottenAfterAWhile) {
  map(parent, 0x1000, "/a", 7);
  map(child, 0x1000, "/b", 8);
  const FileId kept = table.find(parent)->space->find({0x1000})->file;
  const FileId left = table.find(child)->space->find({0x1000})->file;
  table.exit(child, Tid{to_int(child)});
  for (std::uint32_t period = 0; period < FileRegistry::kKeptPeriods; ++period) table.forget_ended();
  EXPECT_TRUE(files.files().contains(left));
  table.forget_ended();
  EXPECT_FALSE(files.files().contains(left));
  EXPECT_EQ(files.file(left), nullptr);
  EXPECT_TRUE(files.files().contains(kept));

  map(parent, 0x5000, "/b", 8);
  EXPECT_NE(table.find(parent)->space->find({0x5000})->file, left);  // its number is not used again
  EXPECT_EQ(provider.asked.size(), 3U);
}

TEST_F(ProcessTableTest, OnlySoManyUnusedFilesAreKept) {
  for (std::size_t file = 0; file < 2 * FileRegistry::kMaxUnused; ++file)
    map(child, 0x1000 * (file + 1), "/file" + std::to_string(file), file + 1);
  table.exit(child, Tid{to_int(child)});
  table.forget_ended();
  EXPECT_EQ(files.files().size(), FileRegistry::kMaxUnused);
}

TEST_F(ProcessTableTest, GeneratedCodeIsForgottenWithItsProcess) {
  map(child, 0x1000, "//anon");
  const FileId code = table.find(child)->space->find({0x1000})->file;
  table.forget_ended();
  EXPECT_TRUE(files.files().contains(code));
  table.exit(child, Tid{to_int(child)});
  table.forget_ended();
  EXPECT_FALSE(files.files().contains(code));
}

TEST_F(ProcessTableTest, AProcessThatIsGoneBeforeItIsFirstSeenLastsForOnePeriod) {
  table.find_or_read(child);
  EXPECT_NE(table.find(child), nullptr);
  table.forget_ended();
  EXPECT_EQ(table.find(child), nullptr);
}

TEST_F(ProcessTableTest, WhenRecordsWereLostProcTellsWhoIsLeft) {
  const Pid self{::getpid()};
  table.find_or_introduce(self);
  table.rename(child, Tid{to_int(child)}, "gone", true);
  table.fork(self, self, Tid{1 << 24}, Tid{::getpid()});
  table.forget_ended();
  EXPECT_NE(table.find(child), nullptr);
  table.note_lost_records();
  table.forget_ended();
  EXPECT_EQ(table.find(child), nullptr);
  ASSERT_NE(table.find(self), nullptr);
  EXPECT_FALSE(table.find(self)->threads.contains(1 << 24));
  EXPECT_TRUE(table.find(self)->threads.contains(::getpid()));
}

TEST_F(ProcessTableTest, AnAdmissionHoldsForForksAndEndsWithExec) {
  table.find_or_introduce(parent).admission = Admission::excluded;
  table.fork(child, parent, Tid{to_int(child)}, Tid{to_int(parent)});
  EXPECT_EQ(table.find(child)->admission, Admission::excluded);
  table.rename(child, Tid{to_int(child)}, "other", true);
  EXPECT_EQ(table.find(child)->admission, Admission::undecided);
}

class HostProcesses : public ProcessTableTest {
 protected:
  ProcessTable host{files, ProcessTable::Follows::whole_host};
};

TEST_F(HostProcesses, SamplesBeforeAnExecKeepTheirService) {
  Process& process = host.find_or_introduce(child);
  host.rename(child, Tid{to_int(child)}, "first", false);
  process.started = std::make_shared<const ProcessIdentity>(identity_in_environment("DD_SERVICE=shop", ""));
  host.rename(child, Tid{to_int(child)}, "second", true);
  EXPECT_EQ(host.names(child, Tid{to_int(child)}, 0).service, "shop");
  EXPECT_EQ(host.names(child, Tid{to_int(child)}, 1).service, "");
  host.identify(process);  // it is gone: what it inherited holds
  EXPECT_EQ(host.names(child, Tid{to_int(child)}, 1).service, "shop");
}

TEST_F(HostProcesses, AnExecutablesNameEndsWithItsExec) {
  Process& process = host.find_or_introduce(child);
  process.started = std::make_shared<const ProcessIdentity>(identity_in_environment("", "sh"));
  host.rename(child, Tid{to_int(child)}, "second", true);
  host.identify(process);
  EXPECT_EQ(process.identity->service, "");
}

TEST_F(HostProcesses, AreIdentifiedOncePerExec) {
  const ExecutedChild shop("DD_SERVICE=shop", "DD_SERVICE=bank DD_ENV=prod");
  const Pid pid = shop.pid();
  const Tid tid{to_int(pid)};
  Process& process = host.find_or_introduce(pid);
  IdentityTable identities;
  for (int sample = 0; sample < 5; ++sample) host.identify(process);
  EXPECT_EQ(host.identifications(), 1U);
  shop.become_next();
  host.rename(pid, tid, "sleep", true);
  for (int sample = 0; sample < 5; ++sample) host.identify(process);
  host.fork(child, pid, Tid{to_int(child)}, tid);
  host.identify(host.find_or_introduce(child));
  EXPECT_EQ(host.identifications(), 2U) << "a child is what its parent was started as";

  const TaskNames names_before = host.names(pid, tid, 0), names_after = host.names(pid, tid, 1);
  const std::uint32_t before = identities.add(pid, names_before);
  const std::uint32_t after = identities.add(pid, names_after);
  EXPECT_EQ(identities.add(pid, names_after), after);
  const auto processes = identities.take();
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0], ProcessIdentity());
  EXPECT_EQ(processes[before].service, "shop");
  EXPECT_EQ(processes[before].environment, "");
  EXPECT_EQ(processes[after].service, "bank");
  EXPECT_EQ(processes[after].environment, "prod");
  EXPECT_EQ(processes[after].pid, to_int(pid));
}

TaskNames names_of_shop(bool is_read, const std::string& container = "c1") {
  ProcessIdentity identity;
  identity.service = identity.program = is_read ? "shop" : "";
  identity.container_id = container;
  identity.is_read = is_read;
  if (is_read) identity.environment = "prod";
  if (is_read) identity.instance_id = "its own";
  return {.process = "shop",
          .thread = "shop",
          .service = "shop",
          .identity = std::make_shared<const ProcessIdentity>(identity)};
}

TEST(IdentityTable, OneThatWasGoneTooSoonIsLikeOthersOfItsServiceAndContainer) {
  IdentityTable table;
  const TaskNames unread = names_of_shop(false), read = names_of_shop(true),
                  of_another = names_of_shop(false, "c2");
  const std::uint32_t gone = table.add(Pid{6}, unread);
  const std::uint32_t living = table.add(Pid{7}, read);
  const std::uint32_t elsewhere = table.add(Pid{8}, of_another);
  const auto first = table.take();
  EXPECT_EQ(first[gone].environment, "prod");
  EXPECT_EQ(first[gone].pid, 6);
  EXPECT_EQ(first[gone].instance_id, "");
  EXPECT_EQ(first[living].instance_id, "its own");
  EXPECT_EQ(first[elsewhere].environment, "");
  EXPECT_EQ(first[elsewhere].service, "shop");
  EXPECT_EQ(table.add(Pid{9}, unread), 1U);
  EXPECT_EQ(table.take()[1].environment, "prod") << "of the period before";
}

TEST(IdentityTable, WhatHasNoServiceIsTheHosts) {
  IdentityTable table;
  EXPECT_EQ(table.add(Pid{2}, {.process = "kworker", .thread = "kworker"}), 0U);
  EXPECT_EQ(table.add(Pid{0}, names_of_shop(true)), 0U);
}

TEST(ProcessTable, ReadsALivingProcessFromProc) {
  ProcFileProvider provider;
  FileRegistry files(provider);
  ProcessTable table(files);
  Process& self = table.find_or_read(Pid{::getpid()});
  EXPECT_EQ(self.name.substr(0, 12), "process_test");
  auto here = reinterpret_cast<std::uint64_t>(&::getpid);
  const CodeMapping* libc = self.space->find({here});
  ASSERT_NE(libc, nullptr);
  const CodeFile& file = *files.file(libc->file);
  EXPECT_EQ(file.kind, CodeFile::Kind::elf);
  EXPECT_NE(file.path.find("libc"), std::string::npos);
  EXPECT_FALSE(file.build_id.empty());
  EXPECT_EQ(files.file(self.program)->base_name(), "process_test");
}

TEST(ProcessTable, TurnsRunTimeAddressesIntoElfAddresses) {
  ProcFileProvider provider;
  FileRegistry files(provider);
  ProcessTable table(files);
  Process& self = table.find_or_read(Pid{::getpid()});
  auto here = reinterpret_cast<std::uint64_t>(&ddprof_process_test_landmark);
  const CodeMapping* mapping = self.space->find({here});
  ASSERT_NE(mapping, nullptr);
  std::uint64_t expected = 0;
  files.file(mapping->file)->elf->for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
    if (symbol.name == "ddprof_process_test_landmark") expected = symbol.value;
  });
  EXPECT_EQ(here - files.resolved(*mapping).bias, expected);
}

TEST_F(ProcessTableTest, AThreadIntroducesItsProcess) {
  const Pid self{::getpid()};
  table.fork(self, self, Tid{1 << 23}, Tid{to_int(self)});
  const Process* process = table.find(self);
  EXPECT_EQ(process->name, "process_test");
  EXPECT_TRUE(process->is_from_proc) << "its code is in /proc alone";
  EXPECT_EQ(process->living_threads, process->threads.size());
  EXPECT_GE(process->threads.size(), 2U);
  EXPECT_FALSE(process->has_ended);
}

TEST_F(ProcessTableTest, IsBackfilledOnceAndWhileItLives) {
  Process& self = table.find_or_introduce(Pid{::getpid()});
  EXPECT_TRUE(table.backfill(self));
  EXPECT_FALSE(table.backfill(self));
  EXPECT_FALSE(table.backfill(table.find_or_introduce(child)));
}

TEST_F(ProcessTableTest, MemoryThatHasBecomeExecutableIsFoundLater) {
  Process& self = table.find_or_introduce(Pid{::getpid()});
  EXPECT_TRUE(table.backfill(self));
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory, 4096, PROT_READ | PROT_EXEC), 0);
  const Address address{reinterpret_cast<std::uint64_t>(memory)};
  EXPECT_FALSE(table.backfill(self)) << "not at once";
  self.next_backfill = {};
  EXPECT_TRUE(table.backfill(self));
  ASSERT_NE(self.space->find(address), nullptr);
  EXPECT_EQ(files.file(self.space->find(address)->file)->kind, CodeFile::Kind::jit);
  const std::uint64_t generation = self.generation;
  for (const auto wait : {200ms, 400ms, 800ms}) {
    self.next_backfill = {};
    EXPECT_FALSE(table.backfill(self)) << "nothing new";
    EXPECT_EQ(self.backfill_wait, wait);
  }
  EXPECT_EQ(self.generation, generation);
  ::munmap(memory, 4096);
}

TEST_F(ProcessTableTest, CodeOfAProgramWithoutAFileIsNamedAfterItsProcess) {
  const Tid tid{to_int(child)};
  ProcessTable host{files, ProcessTable::Follows::whole_host};
  Process& process = host.find_or_introduce(child);
  host.rename(child, tid, "short", false);
  process.started = std::make_shared<const ProcessIdentity>();
  EXPECT_EQ(host.names(child, tid, 0).service, "");  // as of a thread of the kernel
  host.map(child, {0x1000}, 0x1000, 0, {.path = "/a"});
  EXPECT_EQ(host.names(child, tid, 0).service, "short");
  process.started = std::make_shared<const ProcessIdentity>(ProcessIdentity{.program = "shop"});
  EXPECT_EQ(host.names(child, tid, 0).service, "shop");
}

TEST_F(ProcessTableTest, ATaskThatNoExecRemembersHasTheNamesOfNow) {
  table.rename(child, Tid{to_int(child)}, "first", false);
  table.rename(child, Tid{to_int(child)}, "second", true);
  EXPECT_EQ(table.names(child, Tid{to_int(child)}, 0).process, "first");
  EXPECT_EQ(table.names(child, Tid{77}, 0).process, "second");
  table.forget_ended();
  EXPECT_EQ(table.names(child, Tid{to_int(child)}, 0).process, "second");
  EXPECT_EQ(table.names(parent, Tid{77}, 0).process, "");
}

TEST_F(ProcessTableTest, WhatIsNotAFileIsNotOpened) {
  map(parent, 0x1000, "[vsyscall]");
  map(parent, 0x2000, "[heap]");
  map(parent, 0x3000, "[stack:7]");
  map(parent, 0x4000, "/dev/zero (deleted)");
  EXPECT_TRUE(provider.asked.empty());
  EXPECT_EQ(table.find(parent)->program, FileId::none);
  EXPECT_EQ(table.find(parent)->space->find({0x1000})->file, FileId::none);
  EXPECT_EQ(files.file(table.find(parent)->space->find({0x2000})->file)->kind, CodeFile::Kind::jit);
  map(parent, 0x5000, "/a (deleted)");
  EXPECT_EQ(provider.asked, std::vector<std::string>{"/a"});
}

TEST_F(ProcessTableTest, AFileThatCannotBeReadIsTakenAsMapped) {
  table.map(child, {0x5000}, 0x1000, 0x2000, {.path = "/a", .inode = 1});
  EXPECT_EQ(files.resolved(*table.find(child)->space->find({0x5000})).bias, 0x3000U);
  EXPECT_EQ(table.find(child)->space->find({0x6000}), nullptr);
}

TEST_F(ProcessTableTest, AThreadsNameIsNotThatOfItsProcess) {
  table.rename(child, Tid{to_int(child)}, "main", false);
  table.rename(child, Tid{77}, "worker", false);
  EXPECT_EQ(table.find(child)->name, "main");
  EXPECT_EQ(table.names(child, Tid{77}, 0).process, "main");
  EXPECT_EQ(table.names(child, Tid{77}, 0).thread, "worker");
  table.rename(child, Tid{77}, "program", true);  // exec by a thread
  EXPECT_EQ(table.find(child)->name, "program");
}

}  // namespace
}  // namespace ddprof
