#include "symbol/dwarf/unit_calls.hpp"

#include <optional>
#include <utility>

namespace ddprof {

namespace {

// Calls that were inlined into each other. Compilers stop long before.
constexpr std::size_t kMaxInlined = 512;

}  // namespace

void UnitCalls::find(const Unit& unit, std::span<const std::uint64_t> addresses,
                     const DebugInfo::Take& take) {
  names_.trim();
  paths_.clear();
  path_bytes_ = 0;
  const auto program = LineProgram::parse(unit);
  std::vector<FoundLine> lines(addresses.size());
  if (program) lines = find_lines(*program, addresses, bounds_, budget_);

  const auto rest = split_units_.find(unit);
  const Unit& functions = rest != nullptr ? *rest : unit;
  FunctionWalk walk(functions, addresses, bounds_);
  walk.run();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::uint32_t innermost = walk.innermost()[i];
    if (innermost == FunctionNode::kNone && !lines[i].is_found) continue;
    if (budget_.is_spent()) break;
    chain(functions, walk, innermost, lines[i], program ? &*program : nullptr);
    take(addresses[i], calls_);
  }
  if (rest != nullptr) names_.clear();  // its file goes away
}

// From the inside out: the line of the code, then, for each call that was inlined, the line where it was.
void UnitCalls::chain(const Unit& unit, const FunctionWalk& walk, std::uint32_t node, const FoundLine& line,
                      const LineProgram* program) {
  calls_.clear();
  SourceCall call;
  if (line.is_found) call = {{}, {}, path(program, line.file), line.line, line.column, 0};
  if (node == FunctionNode::kNone) calls_.push_back(call);
  while (node != FunctionNode::kNone && calls_.size() < kMaxInlined && budget_.spend(1)) {
    const FunctionNode& function = walk.node(node);
    const FunctionName name = names_.find(unit, function.entry);
    call.linker_name = name.linker_name;
    call.name = name.name;
    call.start_line = name.start_line;
    calls_.push_back(call);
    call = {{}, {}, path(program, function.call_file), function.call_line, function.call_column, 0};
    node = function.parent;
  }
}

std::string_view UnitCalls::path(const LineProgram* program, std::uint64_t file) {
  if (program == nullptr) return {};
  const auto found = paths_.find(file);
  if (found != paths_.end()) return found->second;
  std::string path = program->path(file);
  path_bytes_ += path.size();
  if (!budget_.spend(path.size()) || path_bytes_ > budget_.limits().bytes() / 8) return {};
  return paths_.emplace(file, std::move(path)).first->second;
}

}  // namespace ddprof
