#include <benchmark/benchmark.h>
#include <dwarf.h>
#include <fcntl.h>

#include <filesystem>
#include <string>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "unwind/cfi_test_bytes.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

void compile_repeatedly(benchmark::State& state, const ElfFile& file) {
  std::size_t rows = 0;
  std::size_t bytes = 0;
  for (auto _ : state) {
    RuleDictionary dictionary;
    const UnwindTable table = compile_unwind_table(file, dictionary);
    rows = table.row_count();
    bytes = table.bytes();
    benchmark::DoNotOptimize(table.find(file.entry()));
  }
  state.counters["rows"] = static_cast<double>(rows);
  state.counters["bytes_per_row"] = static_cast<double>(bytes) / static_cast<double>(rows);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows));
}

void compile_file(benchmark::State& state, const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto region = MappedRegion::map_file(fd.get());
  if (!region) return state.SkipWithError("cannot map the file");
  const auto file = ElfFile::parse(region->bytes());
  if (!file) return state.SkipWithError("not an ELF file");
  compile_repeatedly(state, *file);
}

// Functions of eight rows, as compilers write them: pushes, a body, pops.
CfiBytes synthetic_eh_frame(std::size_t rows) {
  constexpr std::uint64_t kFunctionBytes = 0x100;
  EhFrame frames;
  const std::size_t cie = frames.add_cie({.augmentation_data = {0x03}});
  CfiBytes instructions;
  for (const unsigned offset : {16U, 24U, 32U, 48U, 32U, 24U, 16U}) {
    instructions.append({DW_CFA_advance_loc | 2, DW_CFA_def_cfa_offset, offset});
  }
  for (std::size_t i = 0; i < rows / 8; ++i) {
    const auto begin = static_cast<std::uint32_t>(0x1000 + i * kFunctionBytes);
    frames.add_fde_with_pointers(cie, CfiBytes().u32(begin).u32(kFunctionBytes), instructions);
  }
  return frames.data();
}

void CompileSynthetic(benchmark::State& state) {
  const TestElf elf(synthetic_eh_frame(static_cast<std::size_t>(state.range(0))), {});
  compile_repeatedly(state, *ElfFile::parse(elf.bytes()));
}
BENCHMARK(CompileSynthetic)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void FindInOrder(benchmark::State& state) {
  const TestElf elf(synthetic_eh_frame(1'000'000), {});
  RuleDictionary dictionary;
  const UnwindTable table = compile_unwind_table(*ElfFile::parse(elf.bytes()), dictionary);
  std::uint64_t address = table.base();
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.find(address));
    // A stride that is odd and large: neither the same page nor the same row twice in a row.
    address = table.base() + (address - table.base() + 7'654'321) % (table.end() - table.base());
  }
}
BENCHMARK(FindInOrder);

const bool kFilesRegistered = [] {
  for (const char* path : {"/usr/lib/llvm-14/lib/libLLVM-14.so.1", "/usr/lib/x86_64-linux-gnu/libc.so.6",
                           "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    benchmark::RegisterBenchmark(("CompileFile/" + std::filesystem::path(path).filename().string()).c_str(),
                                 [path](benchmark::State& state) { compile_file(state, path); })
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace ddprof
