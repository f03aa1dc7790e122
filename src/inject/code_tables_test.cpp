#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/stack_walk.hpp"

namespace inject {
namespace {

// The memory file of the tables, as the profiler makes it.
class TablesFile {
 public:
  TablesFile() : fd_(::memfd_create("tables", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_, DDPROF_HEAP_TABLES_BYTES), 0);
    memory_ = ::mmap(nullptr, DDPROF_HEAP_TABLES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    tables().magic = DDPROF_HEAP_MAGIC;
    tables().version = DDPROF_HEAP_VERSION;
  }
  ~TablesFile() {
    ::munmap(memory_, DDPROF_HEAP_TABLES_BYTES);
    ::close(fd_);
  }
  TablesFile(const TablesFile&) = delete;
  TablesFile& operator=(const TablesFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] ddprof_heap_tables& tables() const { return *static_cast<ddprof_heap_tables*>(memory_); }

 private:
  int fd_;
  void* memory_ = nullptr;
};

TEST(CodeTables, MapsMoreWhenThereIsMore) {
  const TablesFile file;
  CodeTables code;
  EXPECT_FALSE(code.has_tables());
  ASSERT_TRUE(code.map_tables(file.fd()));
  EXPECT_TRUE(code.has_tables());
  EXPECT_FALSE(code.has_grown());
  for (const uint64_t used : {uint64_t{5} << 20U, uint64_t{100} << 20U, uint64_t{256} << 20U}) {
    file.tables().used = used;
    EXPECT_TRUE(code.has_grown()) << used;
    code.map_more();
    EXPECT_FALSE(code.has_grown()) << used;
  }
  file.tables().used = ~uint64_t{0};  // whoever says that
  code.map_more();
  EXPECT_FALSE(code.has_grown());
}

TEST(CodeTables, WhatIsNoFileOfTablesIsNotUsed) {
  const TablesFile file;
  file.tables().version = DDPROF_HEAP_VERSION + 1;
  CodeTables code;
  EXPECT_FALSE(code.map_tables(file.fd()));
  EXPECT_FALSE(code.map_tables(-1));
  EXPECT_FALSE(code.has_tables());
}

}  // namespace
}  // namespace inject
