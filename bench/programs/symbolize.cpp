// symbolize FILE [CACHE_FOLDER] < ADDRESSES: what a profile's frames go through, on a list of hexadecimal
// addresses of one ELF file. Prints function, file and line of every call, innermost first, as
// llvm-symbolizer does, so that both write their answers.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "process/file_registry.hpp"
#include "session/source_reader.hpp"

using namespace ddprof;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  SourceReader::Wanted wanted;
  std::string line;
  while (std::getline(std::cin, line)) wanted.addresses.push_back(std::stoull(line, nullptr, 16));

  ProcFileProvider provider;
  FileRegistry files(provider);
  wanted.id = files.find_or_open(Pid{static_cast<std::int32_t>(::getpid())}, {}, {}, {.path = argv[1]});
  wanted.file = files.file(wanted.id);
  if (!wanted.file->elf) {
    fmt::print(stderr, "{}: {}\n", argv[1], wanted.file->problem);
    return 1;
  }
  SourceReader reader(argc > 2 ? argv[2] : "");
  reader.read({wanted}, std::chrono::steady_clock::now() + std::chrono::minutes(5));

  std::string text;
  const auto write = [&] {
    std::fwrite(text.data(), 1, text.size(), stdout);
    text.clear();
  };
  const auto known = reader.known();
  for (std::uint64_t address : wanted.addresses) {
    if (text.size() > 65536) write();
    fmt::format_to(std::back_inserter(text), "{:#x}\n", address);
    const auto calls = known.find(wanted.id, address);
    if (!calls) continue;
    for (const NamedCall& call : *calls)
      fmt::format_to(std::back_inserter(text), "{}\n{}:{}:{}\n", call.name, call.file, call.line,
                     call.column);
  }
  write();
}
