#include "unwind/module_map.hpp"

#include <gtest/gtest.h>

#include <array>

namespace ddprof {
namespace {

constexpr std::array<std::byte, 0x40> kCode = [] {
  std::array<std::byte, 0x40> code{};
  for (std::size_t i = 0; i < code.size(); ++i) code[i] = std::byte{static_cast<unsigned char>(i)};
  return code;
}();

Module module_at(std::uint64_t start, std::uint64_t end, std::uint32_t file) {
  Module module;
  module.start = Address{start};
  module.end = Address{end};
  module.bias = start;
  module.file = FileId{file};
  module.code = kCode;
  return module;
}

FileId file_at(const ModuleMap& map, std::uint64_t address) {
  const Module* module = map.find(Address{address});
  return module == nullptr ? FileId::none : module->file;
}

TEST(ModuleMap, FindsTheModuleOfAnAddressAndNothingBetweenModules) {
  ModuleMap map;
  EXPECT_EQ(map.find(Address{0}), nullptr);
  map.add(module_at(0x3000, 0x4000, 3));
  map.add(module_at(0x1000, 0x2000, 1));
  EXPECT_EQ(file_at(map, 0xfff), FileId::none);
  EXPECT_EQ(file_at(map, 0x1000), FileId{1});
  EXPECT_EQ(file_at(map, 0x1fff), FileId{1});
  EXPECT_EQ(file_at(map, 0x2000), FileId::none);
  EXPECT_EQ(file_at(map, 0x3000), FileId{3});
  EXPECT_EQ(file_at(map, 0x4000), FileId::none);
}

TEST(ModuleMap, AddReplacesWhatItOverlapsAndSplitsWhatSurroundsIt) {
  ModuleMap map;
  map.add(module_at(0x1000, 0x1040, 1));
  map.add(module_at(0x1010, 0x1020, 2));
  ASSERT_EQ(map.modules().size(), 3U);
  EXPECT_EQ(file_at(map, 0x100f), FileId{1});
  EXPECT_EQ(file_at(map, 0x1010), FileId{2});
  EXPECT_EQ(file_at(map, 0x1020), FileId{1});
  // The pieces keep their place in the file: bias and code still belong to the address.
  EXPECT_EQ(map.find(Address{0x1025})->elf_address(0x1025), 0x25U);
  EXPECT_EQ(map.find(Address{0x1025})->code_at(0x1025).front(), std::byte{0x25});
  EXPECT_EQ(map.find(Address{0x1005})->code.size(), 0x10U);

  map.add(module_at(0x0, 0x2000, 9));
  ASSERT_EQ(map.modules().size(), 1U);
  EXPECT_EQ(file_at(map, 0x1015), FileId{9});
}

TEST(ModuleMap, RemoveCutsLikeMunmap) {
  ModuleMap map;
  map.add(module_at(0x1000, 0x2000, 1));
  map.add(module_at(0x2000, 0x3000, 2));
  map.remove(Address{0x1800}, Address{0x2800});
  EXPECT_EQ(file_at(map, 0x17ff), FileId{1});
  EXPECT_EQ(file_at(map, 0x1800), FileId::none);
  EXPECT_EQ(file_at(map, 0x27ff), FileId::none);
  EXPECT_EQ(file_at(map, 0x2800), FileId{2});
}

TEST(ModuleMap, EveryChangeGivesANumberThatNoOtherMapHas) {
  ModuleMap first;
  ModuleMap second;
  EXPECT_NE(first.generation(), second.generation());
  const std::uint32_t before = first.generation();
  first.add(module_at(0x1000, 0x2000, 1));
  EXPECT_NE(first.generation(), before);
  EXPECT_NE(first.generation(), second.generation());
}

TEST(Module, GivesTheCodeAroundAnAddressAsFarAsItIsKnown) {
  const Module module = module_at(0x1000, 0x2000, 1);
  EXPECT_EQ(module.code_before(0x1008, 5).size(), 5U);
  EXPECT_EQ(module.code_before(0x1008, 5).front(), std::byte{3});
  EXPECT_EQ(module.code_before(0x1002, 5).size(), 2U);
  EXPECT_TRUE(module.code_at(0x1800).empty());
  EXPECT_TRUE(module.code_before(0x1800, 5).empty());
  EXPECT_TRUE(module.code_at(0x800).empty());
}

TEST(Module, HasTheCodeAtAndBeforeAnAddress) {
  const std::byte bytes[4]{};
  const Module module{.start = {0x1000}, .end = {0x2000}, .code = bytes};
  EXPECT_EQ(module.code_at(0x1000).size(), 4U);
  EXPECT_EQ(module.code_at(0x1003).size(), 1U);
  EXPECT_TRUE(module.code_at(0x1004).empty());
  EXPECT_TRUE(module.code_at(0xfff).empty());
  EXPECT_TRUE(module.code_before(0x1000, 2).empty());
  EXPECT_EQ(module.code_before(0x1001, 2).size(), 1U);
  EXPECT_EQ(module.code_before(0x1003, 2).data(), bytes + 1);
  EXPECT_EQ(module.code_before(0x1004, 2).size(), 2U) << "the end of the code is behind its last byte";
  EXPECT_TRUE(module.code_before(0x1005, 2).empty());
}

}  // namespace
}  // namespace ddprof
