// Arbitrary bytes as an ELF image with debug information, which is also its own supplementary file, .dwo and
// .dwp: time and memory stay bounded, and what is said is about the addresses that were asked for.
#include <cstdlib>
#include <span>
#include <vector>

#include "elf/elf_file.hpp"
#include "symbol/dwarf/debug_info.hpp"

namespace {

class SameFile : public ddprof::DebugFileSource {
 public:
  explicit SameFile(const ddprof::ElfFile& file) : file_(file) {}
  const ddprof::ElfFile* supplementary(std::string_view, const ddprof::BuildId&) override { return &file_; }
  const ddprof::ElfFile* split_unit(std::string_view, std::string_view) override { return &file_; }
  const ddprof::ElfFile* package() override { return &file_; }

 private:
  const ddprof::ElfFile& file_;
};

// Where the code of the seeds is.
std::vector<std::uint64_t> addresses_of(const ddprof::ElfFile& file) {
  std::vector<std::uint64_t> addresses;
  const auto text = file.find_section(".text");
  const std::uint64_t begin = text ? text->vaddr : file.entry();
  for (std::uint64_t i = 0; i < 256 && begin + i >= begin; ++i) addresses.push_back(begin + i);
  return addresses;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  const auto file = ElfFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  SameFile others(*file);
  auto info = DebugInfo::open(*file, others);
  if (!info.ok()) return 0;
  const auto addresses = addresses_of(*file);
  std::uint64_t sum = 0;
  const auto take = [&](std::uint64_t address, std::span<const SourceCall> calls) {
    if (calls.empty() || address < addresses.front() || address > addresses.back()) std::abort();
    for (const SourceCall& call : calls) {
      for (const char letter : call.file) sum += static_cast<unsigned char>(letter);
      for (const char letter : call.name) sum += static_cast<unsigned char>(letter);
      for (const char letter : call.linker_name) sum += static_cast<unsigned char>(letter);
    }
  };
  if (info->find(addresses, take, [] { return true; }) != addresses.size()) std::abort();
  volatile std::uint64_t sink = sum + info->problem().size() + info->memory_bytes();  // keeps the reads
  static_cast<void>(sink);
  return 0;
}
