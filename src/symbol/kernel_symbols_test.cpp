#include "symbol/kernel_symbols.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace ddprof {
namespace {

constexpr std::string_view kText =
    "ffffffff81000200 T second\n"
    "ffffffff81000000 T first\n"
    "ffffffff81000000 t first_alias\n"
    "0000000000001000 A per_cpu_thing\n"
    "ffffffff81000300 D some_data\n"
    "garbage\n"
    "ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n"
    "ffffffffc0a01100 T nft_last\t[nf_tables]\n";

std::string name_at(const KernelSymbols& symbols, std::uint64_t address) {
  const std::optional<KernelSymbol> symbol = symbols.find(address);
  return symbol ? std::string(symbol->name) + std::string(symbol->module) : "";
}

TEST(KernelSymbols, FindsTheFunctionAroundAnAddressInAnyOrderOfLines) {
  const KernelSymbols symbols = KernelSymbols::parse(kText);
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000), "first");
  EXPECT_EQ(name_at(symbols, 0xffffffff810001ff), "first");
  EXPECT_EQ(name_at(symbols, 0xffffffff81000200), "second");
  EXPECT_EQ(name_at(symbols, 0xffffffffc0a01050), "nft_do_chain[nf_tables]");
}

TEST(KernelSymbols, DoesNotStretchFunctionsOverDataOrIntoTheVoid) {
  const KernelSymbols symbols = KernelSymbols::parse(kText);
  EXPECT_EQ(name_at(symbols, 0xffffffff81000300), "");
  EXPECT_EQ(name_at(symbols, 0xffffffff80ffffff), "");
  EXPECT_EQ(name_at(symbols, 0xffffffffc0a01200), "nft_last[nf_tables]");
  EXPECT_EQ(name_at(symbols, 0xffffffffc0b01100), "");
  EXPECT_EQ(name_at(symbols, 0x1000), "");
}

KernelSymbols parse_in_pieces(std::string_view text) {
  KernelSymbolsParser parser;
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), 1000)))
    parser.add(text.substr(0, 1000));
  return std::move(parser).finish();
}

TEST(KernelSymbols, ParsesTheSameInPieces) {
  std::string text;  // lines cross the pieces
  for (std::uint64_t at = 0; at < 4000; ++at)
    text += fmt::format("{:x} T function_{}\n", 0xffffffff82000000 + at * 16, at);
  const KernelSymbols symbols = parse_in_pieces(text.append(kText));
  EXPECT_EQ(name_at(symbols, 0xffffffff810001ff), "first");
  EXPECT_EQ(name_at(symbols, 0xffffffffc0a01050), "nft_do_chain[nf_tables]");
  for (std::uint64_t at = 0; at < 4000; ++at)
    EXPECT_EQ(name_at(symbols, 0xffffffff82000000 + at * 16 + 5), fmt::format("function_{}", at));
}

TEST(KernelSymbols, IsEmptyWhenTheKernelHidesItsAddresses) {
  EXPECT_TRUE(KernelSymbols::parse("0000000000000000 T first\n0000000000000000 T second\n").empty());
  EXPECT_TRUE(KernelSymbols::parse("").empty());
}

TEST(KernelSymbols, ALineWithoutAnEndCostsNoOther) {
  const KernelSymbols symbols = parse_in_pieces(std::string(3 * 16384, 'x').append("\n").append(kText));
  EXPECT_EQ(name_at(symbols, 0xffffffff81000200), "second");
}

TEST(KernelSymbols, TheLastFunctionBeforeAModuleIsShort) {
  const KernelSymbols symbols = KernelSymbols::parse(
      "ffffffff81000000 T first\n"
      "ffffffff81100000 T last\n"
      "ffffffff81300000 T of_module\t[module]\n");
  EXPECT_EQ(name_at(symbols, 0xffffffff810fffff), "first");
  EXPECT_EQ(name_at(symbols, 0xffffffff81100fff), "last");
  EXPECT_EQ(name_at(symbols, 0xffffffff811fffff), "");
}

TEST(KernelSymbols, OfSeveralNamesCodeComesFirstAndThenTheAlphabet) {
  const KernelSymbols symbols = KernelSymbols::parse(
      "ffffffff81000000 D data\n"
      "ffffffff81000000 T b\n"
      "ffffffff81000000 W a\n"
      "ffffffff81000000 t c\n"
      "ffffffff81000100 w weak\n"
      "ffffffff81000100 R more_data\n");
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000), "a");
  EXPECT_EQ(name_at(symbols, 0xffffffff81000100), "weak");
}

TEST(KernelSymbols, NoFunctionIsLargerThanAMebibyte) {
  const KernelSymbols symbols = KernelSymbols::parse("ffffffff81000000 T first\nffffffff81200000 T last\n");
  EXPECT_EQ(name_at(symbols, 0xffffffff810fffff), "first");
  EXPECT_EQ(name_at(symbols, 0xffffffff81100000), "");
  EXPECT_EQ(name_at(symbols, 0xffffffff8120ffff), "last");
  EXPECT_EQ(name_at(symbols, 0xffffffff81210000), "");
}

TEST(KernelSymbols, ALineHasAnAddressATypeAndAName) {
  EXPECT_FALSE(KernelSymbols::parse("ffffffff81000000 T x").empty());
  for (const char* line :
       {"ffffffff81000000 T ", "ffffffff81000000 Tx", "ffffffff81000000-T x", "ffffffff81000000 T\tx",
        "ffffffff81000000 T \t[module]", "x T name", "7fffffff81000000 T x"})
    EXPECT_TRUE(KernelSymbols::parse(line).empty()) << line;
}

MappedRegion mapped_copy_of(std::span<const std::byte> bytes) {
  auto region = MappedRegion::map_anonymous_shared(bytes.size()).value();
  std::copy(bytes.begin(), bytes.end(), region.data());
  return region;
}

TEST(KernelSymbols, AnImageHasTheSymbolsOfTheKernelButNotOfModules) {
  const std::vector<std::byte> image = KernelSymbols::parse(kText).image("this kernel");
  const auto again = KernelSymbols::from_image(mapped_copy_of(image), "this kernel");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(name_at(*again, 0xffffffff810001ff), "first");
  EXPECT_EQ(name_at(*again, 0xffffffff81000200), "second");
  EXPECT_EQ(name_at(*again, 0xffffffffc0a01050), "");
  EXPECT_FALSE(KernelSymbols::from_image(mapped_copy_of(image), "another kernel").ok());
}

TEST(KernelSymbols, AnImageThatIsNotAsItWasMadeIsRefused) {
  const std::vector<std::byte> image = KernelSymbols::parse(kText).image("this kernel");
  const auto is_taken = [](std::vector<std::byte> bytes) {
    return KernelSymbols::from_image(mapped_copy_of(bytes), "this kernel").ok();
  };
  ASSERT_TRUE(is_taken(image));
  for (std::size_t size = 1; size < image.size(); ++size)
    ASSERT_FALSE(
        is_taken(std::vector<std::byte>(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size))))
        << size;
  std::vector<std::byte> longer = image;
  longer.push_back({});
  EXPECT_FALSE(is_taken(longer));
  std::vector<std::byte> renamed = image;
  renamed[0] = std::byte{'x'};
  EXPECT_FALSE(is_taken(renamed));
}

}  // namespace
}  // namespace ddprof
