#include "cli/completion.hpp"
#include "encode/output_format.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kFish = R"sh(# fish completion for ddprof; written by: ddprof completion fish

# Prints the command, how many words came after it, and where the program begins: "record 0", "ddprof program 3".
function __ddprof_place
    set -l with_value @WITH_VALUE@
    set -l words (commandline -opc)
    set -l command ddprof
    set -l count 0
    set -l at 2
    if contains -- "$words[2]" @COMMAND_WORDS@
        set command $words[2]
        set at 3
    end
    while test $at -le (builtin count $words)
        set -l word $words[$at]
        if test "$word" = --
            set at (math $at + 1)
            contains -- $command @PROGRAM_COMMANDS@
            and echo $command program $at
            or echo $command $count
            return
        else if contains -- "$word" $with_value
            set at (math $at + 1)
        else if not string match -q -- '-?*' "$word"
            if contains -- $command @PROGRAM_COMMANDS@
                echo $command program $at
                return
            end
            set count (math $count + 1)
        end
        set at (math $at + 1)
    end
    echo $command $count
end

# One of these commands, while its options are typed.
function __ddprof_at
    set -l place (__ddprof_place | string split ' ')
    test "$place[2]" != program
    and contains -- $place[1] $argv
end

# The first word, before any option.
function __ddprof_first
    test (builtin count (commandline -opc)) -eq 1
end

# After so many words of this command.
function __ddprof_after
    test "$(__ddprof_place)" = "$argv"
end

function __ddprof_in_program
    string match -q '* program *' (__ddprof_place)
end

# What the program's own completion offers, or files.
function __ddprof_program_words
    set -l place (__ddprof_place | string split ' ')
    set -l words (commandline -opc)
    set -l rest
    test $place[3] -le (builtin count $words)
    and set rest $words[$place[3]..-1]
    complete -C (string join ' ' -- (string escape -- $rest) (commandline -ct))
end

# A profile to write: the name with each extension, and files.
function __ddprof_profile
    set -l typed (commandline -ct | string replace -r -- '^--output=' '')
    set -l stem (string replace -r -- '(^|/)([^/.]+)[^/]*$' '$1$2' $typed)
    string match -q -r -- '[^/.]$' "$stem"
    and printf '%s\n' $stem(string split ' ' -- '@EXTENSIONS@')
    __fish_complete_path (commandline -ct | string replace -r -- '^--output=' '')
end

complete -c ddprof -e
complete -c ddprof -f
@LINES@
)sh";

std::string value_arguments(const OptionRow& row) {
  const std::string words = fmt::format("{}", fmt::join(known_words(row), " "));
  switch (value_kind(row)) {
    case ValueKind::nothing:
      return "";
    case ValueKind::words:
      return fmt::format(" -x -a {}", shell_quoted(words));
    case ValueKind::file:
      return words.empty() ? " -r -F" : fmt::format(" -r -F -a {}", shell_quoted(words));
    case ValueKind::folder:
      return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::process:
      return " -x -a '(__fish_complete_pids)'";
    case ValueKind::user:
      return " -x -a '(__fish_complete_users)'";
    case ValueKind::profile:
      return " -x -a '(__ddprof_profile)'";
    case ValueKind::text:
      break;
  }
  return " -x";
}

std::string option_lines(const OptionRow& row) {
  std::vector<std::string_view> owners;
  for (const CommandRow& owner : command_table()) {
    if (owner.command && belongs_to(row, *owner.command)) owners.push_back(word_of(owner));
  }
  const std::string condition = fmt::format("'__ddprof_at {}'", fmt::join(owners, " "));
  std::string text;
  std::string letter;
  for (const std::string& name : spellings(row)) {
    if (!name.starts_with("--")) {
      letter = fmt::format(" -s {}", name.substr(1));
      continue;
    }
    text += fmt::format("complete -c ddprof -n {}{} -l {}{} -d {}\n", condition, letter, name.substr(2),
                        value_arguments(row), shell_quoted(description_of(row, name)));
    letter.clear();
  }
  return text;
}

std::string argument_lines(const CommandRow& row) {
  const std::string at = fmt::format("complete -c ddprof -n '__ddprof_at {}'", word_of(row));
  const auto after = [&](int words) {
    return fmt::format("complete -c ddprof -n '__ddprof_after {} {}'", word_of(row), words);
  };
  switch (row.arguments) {
    case Arguments::program:
      return after(0) + " -a '(__fish_complete_command)' -d program\n" + at + " -F\n";
    case Arguments::profiles:
      return at + " -F\n";
    case Arguments::conversion:
      return after(0) + " -F\n" + after(1) + " -a '(__ddprof_profile)'\n";
    case Arguments::folder:
      return after(0) + " -a '(__fish_complete_directories (commandline -ct))'\n";
    case Arguments::shell:
      return after(0) + " -a 'bash zsh fish'\n";
    default:
      return {};
  }
}

}  // namespace

std::string fish_completion() {
  std::vector<std::string> with_value, programs;
  std::vector<std::string_view> names;
  std::string lines;
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    if (row.arguments == Arguments::program) programs.emplace_back(word_of(row));
    if (row.name.empty()) continue;
    names.push_back(row.name);
    lines += fmt::format("complete -c ddprof -n __ddprof_first -a {} -d {}\n", row.name,
                         shell_quoted(row.summary));
    lines += fmt::format("complete -c ddprof -n '__ddprof_after help 0' -a {} -d {}\n", row.name,
                         shell_quoted(row.summary));
  }
  for (const CommandRow& row : command_table()) {
    if (row.command) lines += argument_lines(row);
  }
  for (const OptionRow& row : option_table()) {
    if (row.level == OptionLevel::hidden) continue;
    if (!is_flag(row)) {
      for (std::string& name : spellings(row)) with_value.push_back(std::move(name));
    }
    if (row.has_effect) lines += option_lines(row);
  }
  lines += "complete -c ddprof -n __ddprof_in_program -a '(__ddprof_program_words)'";
  return filled_in(kFish, {{"WITH_VALUE", fmt::format("{}", fmt::join(with_value, " "))},
                           {"COMMAND_WORDS", fmt::format("{}", fmt::join(names, " "))},
                           {"PROGRAM_COMMANDS", fmt::format("{}", fmt::join(programs, " "))},
                           {"EXTENSIONS", std::string(output_extensions())},
                           {"LINES", lines}});
}

}  // namespace ddprof
