#include "cli/foreign_setting.hpp"

#include "cli/option_table.hpp"

namespace ddprof {

Result<void> refuse_setting(Options& options, std::string_view name, std::string Options::*slot,
                            const Error& trouble, std::string_view hint) {
  const Origin& origin = origin_of(options, name);
  if (origin.kind == Origin::Kind::command_line)
    return Error{ErrorCode::invalid_argument, fmt::format("--{}: {}", name, trouble.message),
                 std::string(hint)};
  options.notices.push_back(fmt::format("{} is left alone: {}", origin.detail, trouble.message));
  (options.*slot).clear();
  return {};
}

}  // namespace ddprof
