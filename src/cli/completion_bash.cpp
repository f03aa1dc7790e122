#include "cli/completion.hpp"
#include "encode/output_format.hpp"

namespace ddprof {

namespace {

// Needs no other package. Where bash-completion is loaded, it completes the arguments of the program.
constexpr std::string_view kBash = R"sh(# bash completion for ddprof; written by: ddprof completion bash

# The options of a command.
_ddprof_options() {
  case $1 in
@OPTIONS@
  esac
}

# What the value of an option is, and the words that it knows. Status 1: it takes none.
_ddprof_value() {
  case $1 in
@VALUES@
    *) return 1 ;;
  esac
}

# Adds the lines of standard input to the answer.
_ddprof_add() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done
}

# Files, with what begins with $1; $2: -f for all, -d for folders.
_ddprof_files() {
  compopt -o filenames 2>/dev/null
  _ddprof_add < <(compgen "$2" -- "$1")
}

# A profile to write: files, and the name with each extension.
_ddprof_profile() {
  local name=${1##*/} stem
  _ddprof_files "$1" -f
  stem=${name%%.*}
  [[ $stem ]] && _ddprof_add < <(compgen -W "@EXTENSIONS@" -P "${1%"$name"}$stem" -- "${name#"$stem"}")
}

# A program: by its path, or from PATH once a letter is there.
_ddprof_program() {
  local folder file IFS=:
  if [[ ! $1 || $1 == */* ]]; then
    _ddprof_files "$1" -f
    return
  fi
  for folder in $PATH; do
    for file in "$folder/$1"*; do
      [[ -f $file && -x $file ]] && COMPREPLY+=("${file##*/}")
    done
  done
  IFS=$' \t\n'
  _ddprof_files "$1" -d
}

_ddprof() {
  local word line=$COMP_LINE command=ddprof kind= known= at last count=0 i
  local -a words=() places=()
  COMPREPLY=()
  # The words as they were typed: bash breaks them at = and : too.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i)) && [[ $line != [[:space:]]* && $line ]]; then
      words[${#words[@]} - 1]+=$word
    else
      words+=("$word")
      places+=("$i")
    fi
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#"$word"}
  done
  last=$((${#words[@]} - 1))
  local current=${words[last]}

  at=1
  if ((last > 1)); then
    case ${words[1]} in
      @COMMAND_PATTERN@) command=${words[1]} at=2 ;;
    esac
  fi
  for (( ; at < last; at++)); do
    word=${words[at]}
    case $word in
      --)
        at=$((at + 1))
        break
        ;;
      --*=*) ;;
      -?*) known=$(_ddprof_value "$word") && at=$((at + 1)) ;;
      *)
        case $command in @PROGRAM_PATTERN@) break ;; esac
        count=$((count + 1))
        ;;
    esac
    if ((at == last)); then # the value of this option is being typed
      kind=${known%% *} known=${known#"$kind"}
      break
    fi
  done

  if [[ ! $kind && $current == --*=* ]]; then
    known=$(_ddprof_value "${current%%=*}") || return
    kind=${known%% *} known=${known#"$kind"} current=${current#*=}
  elif [[ ! $kind ]]; then
    case $command in
      @PROGRAM_PATTERN@)
        if ((at < last)); then # the program's own arguments
          if declare -F _command_offset >/dev/null; then
            _command_offset "${places[at]}"
          else
            _ddprof_files "$current" -f
          fi
          return
        fi
        ;;
    esac
    if [[ $current == -* && ${words[last - 1]} != -- ]]; then
      _ddprof_add < <(compgen -W "$(_ddprof_options "$command")" -- "$current")
      return
    fi
    case $command in
@ARGUMENTS@
    esac
    return
  fi
  case $kind in
    file) _ddprof_files "$current" -f ;;
    folder) _ddprof_files "$current" -d ;;
    profile) _ddprof_profile "$current"; known= ;;
    process) _ddprof_add < <(cd /proc && compgen -W "$(echo [0-9]*)" -- "$current") ;;
    user) _ddprof_add < <(compgen -u -- "$current") ;;
  esac
  [[ $known ]] && _ddprof_add < <(compgen -W "$known" -- "$current")
}

complete -F _ddprof ddprof
)sh";

std::string_view kind_word(ValueKind kind) {
  switch (kind) {
    case ValueKind::file:
      return "file";
    case ValueKind::folder:
      return "folder";
    case ValueKind::process:
      return "process";
    case ValueKind::user:
      return "user";
    case ValueKind::profile:
      return "profile";
    default:
      return "words";
  }
}

std::string options_cases() {
  std::string text;
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    std::vector<std::string> names;
    for (const OptionRow* option : offered_options(*row.command)) {
      for (std::string& name : spellings(*option)) names.push_back(std::move(name));
    }
    text += fmt::format("    {}) echo '{}' ;;\n", word_of(row), fmt::join(names, " "));
  }
  text.pop_back();
  return text;
}

std::string value_cases() {
  std::string text;
  for (const OptionRow& row : option_table()) {
    if (is_flag(row) || row.level == OptionLevel::hidden) continue;
    std::string answer(kind_word(value_kind(row)));
    for (const std::string_view word : known_words(row)) answer += fmt::format(" {}", word);
    text += fmt::format("    {}) echo '{}' ;;\n", fmt::join(spellings(row), " | "), answer);
  }
  text.pop_back();
  return text;
}

std::string command_list(std::string_view separator) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_table()) {
    if (row.command && !row.name.empty()) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, separator));
}

std::string arguments_code(const CommandRow& row) {
  const std::string commands = command_list(" ");
  switch (row.arguments) {
    case Arguments::program:
      if (!row.name.empty()) return R"(_ddprof_program "$current")";
      return fmt::format(
          "((last == 1)) && _ddprof_add < <(compgen -W '{}' -- \"$current\")\n"
          "        [[ $current || ! ${{COMPREPLY[*]}} ]] && _ddprof_program \"$current\"",
          commands);
    case Arguments::profiles:
      return R"(_ddprof_files "$current" -f)";
    case Arguments::conversion:
      return "((count)) && _ddprof_profile \"$current\"\n"
             "        ((count)) || _ddprof_files \"$current\" -f";
    case Arguments::folder:
      return R"(_ddprof_files "$current" -d)";
    case Arguments::command:
      return fmt::format("_ddprof_add < <(compgen -W 'ddprof {}' -- \"$current\")", commands);
    case Arguments::shell:
      return R"(_ddprof_add < <(compgen -W 'bash zsh fish' -- "$current"))";
    case Arguments::none:
      break;
  }
  return ":";
}

std::string arguments_cases() {
  std::string text;
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    text += fmt::format("      {})\n        {}\n        ;;\n", word_of(row), arguments_code(row));
  }
  text.pop_back();
  return text;
}

}  // namespace

std::string bash_completion() {
  return filled_in(kBash, {{"OPTIONS", options_cases()},
                           {"VALUES", value_cases()},
                           {"EXTENSIONS", std::string(output_extensions())},
                           {"COMMAND_PATTERN", command_list(" | ")},
                           {"PROGRAM_PATTERN", "ddprof | record"},
                           {"ARGUMENTS", arguments_cases()}});
}

}  // namespace ddprof
