#include "cli/completion.hpp"
#include "encode/output_format.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kZsh = R"sh(#compdef ddprof
# zsh completion for ddprof; written by: ddprof completion zsh

# A profile to write: files, and the name with each extension.
_ddprof_profile() {
  local name=${PREFIX:t}
  local stem=${name%%.*}
  local -a written=()
  [[ -n $stem ]] && written=(${PREFIX%$name}$stem${^=:-@EXTENSIONS@})
  _files
  compadd -a written
}

_ddprof_program() {
  _alternative 'programs:program:_command_names -e' 'files:file:_files -g "*(-*)"'
}

_ddprof_commands() {
  local -a commands=(
@COMMANDS@
  )
  _describe -t commands 'command of ddprof' commands
}

_ddprof() {
  local curcontext=$curcontext command=ddprof
  if (( CURRENT > 2 )); then
    case $words[2] in
      @COMMAND_PATTERN@)
        command=$words[2]
        shift words
        (( CURRENT-- ))
        ;;
    esac
  fi
  case $command in
@SPECS@
  esac
}

if [[ $funcstack[1] == _ddprof ]]; then
  _ddprof "$@"
else
  compdef _ddprof ddprof
fi
)sh";

// Brackets and colons have a meaning in specifications.
std::string spec_text(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

std::string value_action(const OptionRow& row) {
  const std::string words = fmt::format("{}", fmt::join(known_words(row), " "));
  switch (value_kind(row)) {
    case ValueKind::words:
      return fmt::format("({})", words);
    case ValueKind::file:
      return words.empty() ? "_files" : fmt::format("{{ compadd - {}; _files }}", words);
    case ValueKind::folder:
      return "_files -/";
    case ValueKind::process:
      return "_pids";
    case ValueKind::user:
      return "_users";
    case ValueKind::profile:
      return "_ddprof_profile";
    default:
      return " ";
  }
}

std::string option_spec(const OptionRow& row, std::string_view name) {
  const bool repeats = std::holds_alternative<std::vector<std::string> Options::*>(row.slot);
  const std::string others = repeats ? std::string("*") : fmt::format("({})", fmt::join(spellings(row), " "));
  const bool has_value = !is_flag(row);
  const std::string_view joint = !has_value ? "" : name.starts_with("--") ? "=" : "+";
  std::string spec = fmt::format("{}{}{}[{}]", others, name, joint, spec_text(description_of(row, name)));
  if (has_value) spec += fmt::format(":{}:{}", spec_text(row.value), value_action(row));
  return shell_quoted(spec);
}

std::vector<std::string> argument_specs(const CommandRow& row) {
  switch (row.arguments) {
    case Arguments::program:
      return {row.name.empty() ? "'(-)1: :{ (( CURRENT == 2 )) && _ddprof_commands; _ddprof_program }'"
                               : "'(-)1: :_ddprof_program'",
              "'*:: :_normal'"};
    case Arguments::profiles:
      return {"'*:profile:_files'"};
    case Arguments::conversion:
      return {"'1:profile:_files'", "'2:profile to write:_ddprof_profile'"};
    case Arguments::folder:
      return {"'1:folder:_files -/'"};
    case Arguments::command:
      return {"'1: :{ compadd ddprof; _ddprof_commands }'"};
    case Arguments::shell:
      return {"'1:shell:(bash zsh fish)'"};
    case Arguments::none:
      break;
  }
  return {};
}

std::string specs_of(const CommandRow& row) {
  std::vector<std::string> specs;
  for (const OptionRow* option : offered_options(*row.command)) {
    for (const std::string& name : spellings(*option)) specs.push_back(option_spec(*option, name));
  }
  for (std::string& spec : argument_specs(row)) specs.push_back(std::move(spec));
  return fmt::format("    {})\n      _arguments -s -S \\\n        {}\n      ;;\n", word_of(row),
                     fmt::join(specs, " \\\n        "));
}

}  // namespace

std::string zsh_completion() {
  std::string commands, specs;
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    specs += specs_of(row);
    if (row.name.empty()) continue;
    names.push_back(row.name);
    commands += fmt::format("    {}\n", shell_quoted(fmt::format("{}:{}", row.name, row.summary)));
  }
  commands.pop_back();
  specs.pop_back();
  return filled_in(kZsh, {{"EXTENSIONS", std::string(output_extensions())},
                          {"COMMANDS", commands},
                          {"COMMAND_PATTERN", fmt::format("{}", fmt::join(names, "|"))},
                          {"SPECS", specs}});
}

}  // namespace ddprof
