// Reads files with every parser of foreign bytes, as a worker would: within the memory that it has, and in
// bounded time. For tests: `read_all [--memory MIB] [--seconds S] FILE...`, or with the names in its input. A
// line for each file; the exit status is 1 when one took too much of either.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mapped_region.hpp"
#include "elf/thread_symbol.hpp"
#include "session/file_guard.hpp"
#include "session/module_reader.hpp"
#include "symbol/code_names.hpp"
#include "symbol/demangle.hpp"
#include "symbol/jit_dump.hpp"
#include "symbol/jit_names.hpp"
#include "symbol/start_functions.hpp"
#include "symbol/symbol_table.hpp"
#include "unwind/compile.hpp"
#include "unwind/function_ranges.hpp"
#include "unwind/swept_functions.hpp"

namespace ddprof {

namespace {

struct Settings {
  std::uint64_t memory_mib = 256;  // of a worker's 384 MiB: others go on
  double seconds = 5;              // of CPU time for one file
  std::vector<std::string> files;
};

Settings settings_of(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--memory" && i + 1 < argc)
      settings.memory_mib = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--seconds" && i + 1 < argc)
      settings.seconds = std::strtod(argv[++i], nullptr);
    else
      settings.files.push_back(word);
  }
  return settings;
}

// Some of all code, and what symbols point at.
std::vector<std::uint64_t> addresses_in(const ElfFile& elf) {
  constexpr std::size_t kPerSegment = 64, kSymbols = 512;
  std::vector<std::uint64_t> addresses;
  for (const ElfSegment& segment : elf.segments()) {
    if ((segment.flags & 1U) == 0) continue;  // not executable
    for (std::uint64_t i = 0; i < kPerSegment && addresses.size() < kSymbols; ++i)
      addresses.push_back(segment.vaddr + segment.memsz / kPerSegment * i);
  }
  std::size_t count = 0;
  elf.for_each_symbol(SymbolTableKind::symtab, [&](const ElfSymbol& symbol) {
    if (symbol.size != 0 && ++count < kSymbols) addresses.push_back(symbol.value + symbol.size / 2);
  });
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

class Reader {
 public:
  // What could not be read, and why; empty: everything was.
  std::vector<std::string> read(const std::string& path) {
    problems_.clear();
    is_out_of_memory_ = false;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    auto image = MappedRegion::map_file(fd.get());
    if (!image) return {image.error().message};
    CodeFile file{.kind = CodeFile::Kind::elf, .path = path};
    file.image = *std::move(image);
    read_generated(file);
    if (auto elf = ElfFile::parse(file.image.bytes())) {
      file.build_id = elf->build_id();
      file.elf = *std::move(elf);
      read_elf(std::make_shared<const CodeFile>(std::move(file)));
    } else {
      problems_.push_back(elf.error().message);
    }
    return problems_;
  }

  // Limits are to hold before that.
  [[nodiscard]] bool is_out_of_memory() const { return is_out_of_memory_; }

 private:
  template <typename Read>
  void guarded(const CodeFile& file, FileUse use, Read read) {
    const auto done = guard_.read(file, use, read);
    if (!done) problems_.push_back(done.error().message);
    is_out_of_memory_ |= suspects_.is_left_alone(FileGuard::number_of(file, use), monotonic_now());
  }

  void read_elf(const std::shared_ptr<const CodeFile>& file) {
    const std::vector<std::uint64_t> addresses = addresses_in(*file->elf);
    guarded(*file, FileUse::unwind_table, [&]() -> Result<void> {
      RuleDictionary rules;
      const UnwindTable table = compile_unwind_table(*file->elf, rules, guard_.limits);
      for (const std::uint64_t address : addresses) static_cast<void>(table.find(address));
      const auto windows = WindowCompiler::of(*file->elf, 0);
      for (const std::uint64_t address : addresses) {
        const auto window = windows ? windows->window_of(address) : std::nullopt;
        if (window) static_cast<void>(windows->compile(*window, rules, guard_.limits).find(address));
      }
      if (table.counters().unread > 0) problems_.emplace_back("unwind information: too large to read");
      static_cast<void>(find_thread_symbol(*file->elf, "otel_thread_ctx_v1"));
      return {};
    });
    guarded(*file, FileUse::symbols, [&]() -> Result<void> {
      for (const Symbol& symbol : TRY(find_symbols(*file->elf, addresses, guard_.limits)))
        static_cast<void>(demangle(symbol.linker_name()));
      return {};
    });
    guarded(*file, FileUse::functions, [&]() -> Result<void> {
      const FunctionRanges ranges(*file->elf, guard_.limits);
      const StartFunctions starts(*file->elf, "libc.so.6");  // what most is read of
      SweptFunctions swept(*file->elf);
      for (const std::uint64_t address : addresses) {
        if (const auto range = swept.find(address, ranges))
          static_cast<void>(starts.name_of(*file->elf, range->begin, range->end));
      }
      return {};
    });
    guarded(*file, FileUse::debug_info, [&]() -> Result<void> {
      ModuleReader reader(file, finder_, guard_.limits);
      CodeNames names;
      reader.read(
          addresses,
          [&](std::uint64_t address, std::span<const SourceCall> calls) { names.add(address, calls); },
          [] { return true; });
      if (!reader.problem().empty()) problems_.push_back(reader.problem());
      return {};
    });
  }

  // As if it were what a JIT compiler wrote.
  void read_generated(const CodeFile& file) {
    const std::span<const std::byte> bytes = file.image.bytes();
    guarded(file, FileUse::generated_code, [&]() -> Result<void> {
      constexpr std::size_t kMaxMapBytes = std::size_t{128} << 20U;
      if (bytes.size() <= kMaxMapBytes) {
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const JitNames map = JitNames::parse(text, guard_.limits);
        if (map.unread_lines() > 0) problems_.emplace_back("perf map: too large to read");
      }
      return read_dump(bytes);
    });
  }

  Result<void> read_dump(std::span<const std::byte> bytes) {
    JitDump dump(guard_.limits);
    for (std::uint64_t before = 1; before != dump.offset() && dump.offset() < bytes.size();) {
      before = dump.offset();
      const auto rest = bytes.subspan(before);
      if (!dump.read(rest.first(std::min(rest.size(), JitDump::kMaxRecordBytes)), bytes.size())) break;
    }
    std::vector<GeneratedCode> pieces;
    dump.for_each_unwinding([&](const JitDump::Unwinding& piece) {
      pieces.push_back({piece.begin, piece.end, piece.moved_by, piece.vaddr, piece.eh_frame});
    });
    RuleDictionary rules;
    const UnwindTable table = compile_generated_code(pieces, Architecture::x86_64, rules, guard_.limits);
    if (table.counters().unread > 0) problems_.emplace_back("generated code: too large to read");
    return {};
  }

  SuspectFiles suspects_;
  FileGuard guard_{{}, &suspects_};
  PatientOpener opener_;
  DebugFileFinder finder_{opener_, {}};
  std::vector<std::string> problems_;
  bool is_out_of_memory_ = false;
};

int run(const Settings& settings) {
  const rlimit memory{settings.memory_mib << 20U, settings.memory_mib << 20U};
  ::setrlimit(RLIMIT_DATA, &memory);
  survive_truncated_files();
  Reader reader;
  int status = 0;
  const auto read = [&](const std::string& path) {
    fmt::print("{}: ", path);
    std::fflush(stdout);  // who ends in the middle of it is known
    const Nanoseconds before = thread_cpu_now();
    const std::vector<std::string> problems = reader.read(path);
    const double seconds = std::chrono::duration<double>(thread_cpu_now() - before).count();
    const bool is_out = reader.is_out_of_memory();
    const bool is_slow = seconds > settings.seconds;
    if (is_slow || is_out) status = 1;
    fmt::print("{:.3f} s{}{}{}{}\n", seconds, is_slow ? ", SLOW" : "", is_out ? ", OUT OF MEMORY" : "",
               problems.empty() ? "" : "; ", fmt::join(problems, "; "));
    std::fflush(stdout);
  };
  for (const std::string& path : settings.files) read(path);
  if (settings.files.empty()) {
    for (std::string path; std::getline(std::cin, path);) read(path);
  }
  return status;
}

}  // namespace

}  // namespace ddprof

int main(int argc, char** argv) { return ddprof::run(ddprof::settings_of(argc, argv)); }
