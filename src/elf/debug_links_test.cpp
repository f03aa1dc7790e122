#include "elf/debug_links.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/scratch_fixture.hpp"
#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A program, what is asked about it by the tools that write these sections, and the sections.
class DebugLinks : public testing::Test {
 protected:
  void build(const std::string& flags = "") {
    folder_.write("program.c", "int main(void) { return 0; }\nint helper(int x) { return x + 1; }\n");
    folder_.run("gcc -g -Wl,--build-id " + flags + " program.c -o program");
  }
  ElfFile parse(const std::string& name) {
    contents_.push_back(std::make_unique<std::string>(folder_.read(name)));
    return *ElfFile::parse(bytes_of(*contents_.back()));
  }

  ScratchFolder folder_;
  std::vector<std::unique_ptr<std::string>> contents_;
};

TEST_F(DebugLinks, ReadsTheLinkThatObjcopyAdds) {
  build();
  folder_.run("objcopy --only-keep-debug program program.debug");
  folder_.run("strip -g program && objcopy --add-gnu-debuglink=program.debug program");
  const ElfFile program = parse("program");
  const auto link = find_debug_link(program);
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->name, "program.debug");
  EXPECT_EQ(link->checksum, debug_link_checksum(parse("program.debug").image()));
}

// The checksum is behind the name, at a multiple of four.
TEST_F(DebugLinks, NamesHaveAnyLength) {
  build();
  for (const std::string name : {"a", "ab", "abc", "abcd"}) {
    folder_.run("cp program " + name + " && objcopy --add-gnu-debuglink=" + name + " program linked");
    const auto link = find_debug_link(parse("linked"));
    ASSERT_TRUE(link.has_value()) << name;
    EXPECT_EQ(link->name, name);
    EXPECT_EQ(link->checksum, debug_link_checksum(parse(name).image()));
  }
}

TEST_F(DebugLinks, ReadsTheLinksThatDwzAdds) {
  build();
  for (const std::string flag : {"", "--dwarf-5"}) {
    folder_.run("cp program one && cp program two && dwz " + flag + " -m common.dwz -M ../common one two");
    const ElfFile program = parse("one");
    const auto link = find_supplementary_link(program);
    ASSERT_TRUE(link.has_value()) << flag;
    EXPECT_EQ(link->path, "../common");
    EXPECT_FALSE(link->build_id.empty());
    EXPECT_EQ(link->build_id, supplementary_id(parse("common.dwz"))) << flag;
    EXPECT_FALSE(find_supplementary_link(parse("common.dwz")).has_value());
  }
}

TEST_F(DebugLinks, AreAbsentFromAProgramWithoutThem) {
  build();
  const ElfFile program = parse("program");
  EXPECT_FALSE(find_debug_link(program).has_value());
  EXPECT_FALSE(find_supplementary_link(program).has_value());
  EXPECT_EQ(unpack_mini_debug_info(program).error().code, ErrorCode::not_found);
}

TEST_F(DebugLinks, AreRefusedWhenTheyAreCut) {
  build();
  for (const std::string content : {"", "name", "name\\0", "name\\0\\0\\0\\0abc", "\\0\\0\\0\\0abcd"}) {
    folder_.run("printf '" + content +
                "' >section && objcopy --add-section .gnu_debuglink=section program cut");
    EXPECT_FALSE(find_debug_link(parse("cut")).has_value()) << content;
  }
  for (const std::string content : {"", "path", "\\0abc"}) {
    folder_.run("printf '" + content +
                "' >section && objcopy --add-section .gnu_debugaltlink=section program cut");
    EXPECT_FALSE(find_supplementary_link(parse("cut")).has_value()) << content;
  }
  for (const std::string content :
       {"\\5", "\\5\\0\\0", "\\5\\0\\0path\\0", "\\5\\0\\0path\\0\\377", "\\5\\0\\1p\\0\\0"}) {
    folder_.run("printf '" + content + "' >section && objcopy --add-section .debug_sup=section program cut");
    EXPECT_FALSE(find_supplementary_link(parse("cut")).has_value()) << content;
  }
}

TEST_F(DebugLinks, AChecksumOf127BytesIsTheLongest) {
  build();
  for (const std::string length : {"177", "200"}) {
    folder_.run(
        "{ printf '\\5\\0\\0path\\0\\" + length +
        "'; head -c 128 /dev/zero; } >section && objcopy --add-section .debug_sup=section program long");
    EXPECT_EQ(find_supplementary_link(parse("long")).has_value(), length == "177");
  }
}

TEST_F(DebugLinks, MiniDebugInfoNamesWhatTheStrippedProgramDoesNot) {
  build();
  folder_.run("objcopy -S --remove-section .gnu_debuglink --keep-symbol=helper program mini && xz mini");
  folder_.run("strip program && objcopy --add-section .gnu_debugdata=mini.xz program");
  const ElfFile program = parse("program");
  EXPECT_FALSE(program.for_each_symbol(SymbolTableKind::symtab, [](const ElfSymbol&) {}));
  const auto unpacked = unpack_mini_debug_info(program);
  ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
  std::string names;
  ElfFile::parse(*unpacked)->for_each_symbol(SymbolTableKind::symtab,
                                             [&](const ElfSymbol& symbol) { names += symbol.name; });
  EXPECT_EQ(names, "helper");
}

TEST_F(DebugLinks, MiniDebugInfoIsBoundedAndNeverTrusted) {
  build();
  folder_.run("head -c 1000000 /dev/zero | xz >bomb.xz && head -c 100 bomb.xz >cut.xz");
  folder_.run("objcopy --add-section .gnu_debugdata=bomb.xz program bomb");
  folder_.run("objcopy --add-section .gnu_debugdata=cut.xz program cut");
  folder_.run("objcopy --add-section .gnu_debugdata=program.c program noise");
  EXPECT_EQ(unpack_mini_debug_info(parse("bomb"), 999999).error().code, ErrorCode::exhausted);
  EXPECT_EQ(unpack_mini_debug_info(parse("bomb"), 1000001)->size(), 1000000U);
  EXPECT_EQ(unpack_mini_debug_info(parse("cut")).error().code, ErrorCode::corrupt);
  EXPECT_EQ(unpack_mini_debug_info(parse("noise")).error().code, ErrorCode::corrupt);
}

// Room in memory, in as many pieces as come.
struct Pieces : Scratch {
  Result<MappedRegion> fill(std::uint64_t bytes, const Produce& produce) override {
    wanted = bytes;
    TRY(produce([this](std::span<const std::byte> piece) {
      content.insert(content.end(), piece.begin(), piece.end());
      return Result<void>();
    }));
    return MappedRegion();
  }
  std::uint64_t wanted = 0;
  std::vector<std::byte> content;
};

// objcopy's compressed forms of one section, against its uncompressed form.
TEST_F(DebugLinks, CompressedSectionsUnpackToWhatTheyWere) {
  build("-fdebug-prefix-map=$PWD=" + std::string(2000, 'x'));
  folder_.run("objcopy --decompress-debug-sections program plain");
  const ElfFile plain = parse("plain");
  for (const std::string form : {"zlib-gabi", "zlib-gnu", "zstd"}) {
    folder_.run("objcopy --compress-debug-sections=" + form + " plain packed");
    const ElfFile packed = parse("packed");
    const auto section = packed.find_debug_section(".debug_info");
    ASSERT_TRUE(section.has_value()) << form;
    const auto expected = plain.find_section(".debug_info")->data;
    ASSERT_LT(section->data.size(), expected.size()) << form;
    const auto unpacked = packed.uncompressed(*section);
    ASSERT_TRUE(unpacked.ok()) << form << ": " << unpacked.error().message;
    EXPECT_TRUE(std::equal(unpacked->begin(), unpacked->end(), expected.begin(), expected.end())) << form;
    EXPECT_EQ(packed.uncompressed(*section, expected.size() - 1).error().code, ErrorCode::exhausted) << form;

    Pieces pieces;
    EXPECT_EQ(ElfFile::uncompressed_bytes(*section), expected.size()) << form;
    ASSERT_TRUE(packed.uncompressed(*section, pieces).ok()) << form;
    EXPECT_EQ(pieces.wanted, expected.size()) << form;
    EXPECT_TRUE(std::equal(pieces.content.begin(), pieces.content.end(), expected.begin(), expected.end()));

    ElfSection cut = *section;
    for (std::size_t size = 0; size < section->data.size(); ++size) {
      cut.data = section->data.first(size);
      EXPECT_FALSE(packed.uncompressed(cut).ok()) << form << " cut to " << size;
      EXPECT_FALSE(packed.uncompressed(cut, pieces).ok()) << form << " cut to " << size;
    }
  }
}

TEST_F(DebugLinks, UnpacksMoreThanOneBufferOntoADisk) {
  build();
  folder_.run("seq 1 1000000 >numbers && head -c 40000000 /dev/zero >zeros");
  for (const std::string form : {"zlib-gabi", "zstd"}) {
    folder_.run(
        "objcopy --add-section .debug_numbers=numbers --add-section .debug_zeros=zeros program plain");
    folder_.run("objcopy --compress-debug-sections=" + form + " plain packed");
    const ElfFile packed = parse("packed");
    Pieces pieces;
    ASSERT_TRUE(packed.uncompressed(*packed.find_section(".debug_numbers"), pieces).ok()) << form;
    const auto expected = parse("plain").find_section(".debug_numbers")->data;
    EXPECT_TRUE(std::equal(pieces.content.begin(), pieces.content.end(), expected.begin(), expected.end()));
    const auto zeros = packed.uncompressed(*packed.find_section(".debug_zeros"), pieces);
    EXPECT_EQ(zeros.error().code, ErrorCode::corrupt) << "a small file may not take a large part of the disk";
  }
}

}  // namespace
}  // namespace ddprof
