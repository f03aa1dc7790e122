#include "unwind/stack_case_files.hpp"

#include <fstream>
#include <iterator>

#include "base/output_file.hpp"
#include "unwind/stack_case_text.hpp"

namespace ddprof {

namespace {

namespace fs = std::filesystem;

std::string module_file(std::size_t index) { return fmt::format("module.{}.unwind", index); }

Result<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::not_found, "open {}: no such file", path.string());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Result<void> write_stack_case(const fs::path& directory, const StackCase& stack_case) {
  const OutputFolder folder = TRY(OutputFolder::open(directory.string(), MissingFolders::make));
  TRY(folder.replace("case.txt", format_stack_case(stack_case)));
  const auto* bytes = reinterpret_cast<const char*>(stack_case.stack.data());
  TRY(folder.replace("stack.bin", {bytes, stack_case.stack.size()}));
  for (std::size_t i = 0; i < stack_case.modules.size(); ++i)
    TRY(folder.replace(module_file(i), format_stack_case_module(stack_case.modules[i])));
  return {};
}

Result<StackCase> read_stack_case(const fs::path& directory) {
  const std::string text = TRY(read_file(directory / "case.txt"));
  StackCase stack_case = TRY(parse_stack_case(text));
  const std::string stack = TRY(read_file(directory / "stack.bin"));
  const auto bytes = std::as_bytes(std::span(stack));
  stack_case.stack.assign(bytes.begin(), bytes.end());
  for (std::size_t i = 0; i < stack_case.modules.size(); ++i) {
    const std::string module_text = TRY(read_file(directory / module_file(i)));
    TRY(parse_stack_case_module(module_text, stack_case.modules[i]));
  }
  return stack_case;
}

}  // namespace ddprof
