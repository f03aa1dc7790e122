#include "symbol/code_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;

MappedRegion region_of(std::span<const std::byte> bytes) {
  UniqueFd fd(::memfd_create("names", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto region = MappedRegion::map_file(fd.get());
  EXPECT_TRUE(region.ok());
  return *std::move(region);
}

CodeNames two_addresses() {
  CodeNames names;
  const SourceCall calls[] = {{"_ZN4shop3addEii", "add", "/src/shop.cpp", 7, 3, 5},
                              {"", "main", "/src/main.c", 12, 0, 10}};
  names.add(0x1000, calls);
  names.add(0x2000, {});
  return names;
}

std::vector<std::string> texts(const std::optional<std::vector<NamedCall>>& calls) {
  std::vector<std::string> lines;
  for (const NamedCall& call : *calls) {
    lines.push_back(fmt::format("{} {} {}:{}:{} from {}", call.linker_name, call.name, call.file, call.line,
                                call.column, call.start_line));
  }
  return lines;
}

void expect_two_addresses(const CodeNames& names) {
  ASSERT_TRUE(names.find(0x1000).has_value());
  EXPECT_THAT(texts(names.find(0x1000)),
              ElementsAre("_ZN4shop3addEii shop::add(int, int) /src/shop.cpp:7:3 from 5",
                          "main main /src/main.c:12:0 from 10"));
  ASSERT_TRUE(names.find(0x2000).has_value());
  EXPECT_TRUE(names.find(0x2000)->empty());
  EXPECT_FALSE(names.find(0x1001).has_value());
}

TEST(CodeNames, TellsWhatIsKnownFromWhatWasNeverAsked) { expect_two_addresses(two_addresses()); }

TEST(CodeNames, SurvivesAsAnImage) {
  auto names = CodeNames::from_image(region_of(two_addresses().image("key")), "key");
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 2U);
  expect_two_addresses(*names);
}

TEST(CodeNames, FindsEachAddressOfAnImageAndNoOther) {
  for (std::uint64_t count = 1; count < 10; ++count) {
    CodeNames names;
    for (std::uint64_t at = 1; at <= count; ++at) names.add(at * 16, {});
    const auto image = CodeNames::from_image(region_of(names.image("key")), "key");
    ASSERT_TRUE(image.ok());
    for (std::uint64_t address = 0; address <= count * 16 + 16; ++address)
      EXPECT_EQ(image->find(address).has_value(), address % 16 == 0 && address >= 16 && address <= count * 16)
          << address << " of " << count;
  }
}

TEST(CodeNames, AddsToWhatAnImageHolds) {
  auto names = CodeNames::from_image(region_of(two_addresses().image("key")), "key");
  const SourceCall call{"", "late", "/src/late.c", 1, 0, 1};
  names->add(0x2000, {&call, 1});
  names->add(0x3000, {&call, 1});
  auto again = CodeNames::from_image(region_of(names->image("key")), "key");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->size(), 3U);
  EXPECT_THAT(texts(again->find(0x2000)), ElementsAre("late late /src/late.c:1:0 from 1"));
  EXPECT_EQ(again->find(0x1000)->size(), 2U);
}

TEST(CodeNames, IsTheSameImageForTheSameContent) {
  EXPECT_EQ(two_addresses().image("key"), two_addresses().image("key"));
}

TEST(CodeNames, DoesNotTakeTheImageOfAnotherFile) {
  EXPECT_FALSE(CodeNames::from_image(region_of(two_addresses().image("key")), "yek").ok());
}

TEST(CodeNames, DoesNotTakeAnImageThatWasCut) {
  const auto image = two_addresses().image("key");
  for (std::size_t size = 1; size < image.size(); ++size) {
    EXPECT_FALSE(CodeNames::from_image(region_of(std::span(image).first(size)), "key").ok());
  }
}

TEST(CodeNames, ReadsNothingOutsideOfADamagedImage) {
  const auto image = two_addresses().image("key");
  for (std::size_t at = 0; at < image.size(); ++at) {
    auto damaged = image;
    damaged[at] = std::byte{0xff};
    auto names = CodeNames::from_image(region_of(damaged), "key");
    if (!names) continue;
    for (std::uint64_t address : {0x1000U, 0x2000U, 0x3000U}) static_cast<void>(names->find(address));
    static_cast<void>(names->image("key"));
  }
}

TEST(CodeNames, KeepsAnImageWithinItsBudget) {
  CodeNames names;
  const std::string long_name(10'000, 'x');
  for (std::uint64_t address = 0; address < 3'000; ++address) {
    const std::string name = long_name + std::to_string(address);
    const SourceCall call{"", name, "", 1, 0, 1};
    names.add(address, {&call, 1});
  }
  EXPECT_LT(names.image("key").size(), CodeNames::kMaxImageBytes + 100'000);
}

}  // namespace
}  // namespace ddprof
