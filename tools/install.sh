#!/bin/sh
# install.sh install|uninstall PREFIX [PROGRAM]: the program, the manual pages and completions that it prints itself, and what programs are built with
# that profile themselves. Both walk one list.
set -eu
cd "$(dirname "$0")/.."
action=$1 prefix=$2
# An installation can be removed without a build: the program that was installed knows its commands.
program=${3:-build/release/ddprof}
[ "$action" = install ] || [ ! -x "$prefix/bin/ddprof" ] || program=$prefix/bin/ddprof

# place MODE PATH [ARGUMENTS]: what the program prints for these arguments, or the program itself.
place() {
  mode=$1 path=$prefix/$2
  shift 2
  if [ "$action" = uninstall ]; then
    [ ! -e "$path" ] || { rm -f "$path" && echo "removed $path"; }
    return 0
  fi
  source=$program
  if [ $# -gt 0 ]; then
    source=$printed
    "$program" "$@" >"$printed"
    [ -s "$printed" ] || { echo "install: $program $* printed nothing" >&2; exit 1; }
  fi
  install -Dm"$mode" "$source" "$path"
  echo "$path"
}

# place_file MODE PATH SOURCE [OPTIONS of install]
place_file() {
  mode=$1 path=$prefix/$2 source=$3
  shift 3
  if [ "$action" = uninstall ]; then
    [ ! -e "$path" ] || { rm -f "$path" && echo "removed $path"; }
    return 0
  fi
  install -Dm"$mode" "$@" "$source" "$path"
  echo "$path"
}

printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
commands=$("$program" --help-commands 2>/dev/null) || [ "$action" = uninstall ] || { echo "install: $program does not tell its commands" >&2; exit 1; }
place 644 share/man/man1/ddprof.1 --help-man
for command in $commands; do
  place 644 "share/man/man1/ddprof-$command.1" "$command" --help-man
done
place 644 share/bash-completion/completions/ddprof completion bash
place 644 share/zsh/site-functions/_ddprof completion zsh
place 644 share/fish/vendor_completions.d/ddprof.fish completion fish
place_file 755 lib/libddprof.so "$(dirname "$program")/libddprof.so" --strip
place_file 644 include/ddprof.h include/ddprof.h
place_file 644 include/ddprof.hpp include/ddprof.hpp
place_file 644 lib/pkgconfig/ddprof.pc packaging/ddprof.pc
for file in ddprof-config.cmake ddprof-config-version.cmake; do
  place_file 644 "lib/cmake/ddprof/$file" "packaging/$file"
done
place 755 bin/ddprof
