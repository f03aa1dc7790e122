#!/bin/sh
# All C++ is formatted by .clang-format; `tools/check_format.sh --fix` formats it.
set -eu
cd "$(dirname "$0")/.."
files=$(git ls-files '*.cpp' '*.hpp' '*.h' '*.c')
[ "${1:-}" = --fix ] && exec clang-format -i $files
exec clang-format --dry-run -Werror $files
