#!/bin/sh
# All C++ is formatted by .clang-format; `tools/check_format.sh --fix` formats it. By version 14, Debian 12's: others break lines elsewhere.
set -eu
cd "$(dirname "$0")/.."
format=""
for candidate in clang-format-14 clang-format; do
  if "$candidate" --version 2>/dev/null | grep -q ' version 14\.'; then
    format=$candidate
    break
  fi
done
if [ -z "$format" ]; then
  echo "sources are formatted by clang-format 14, which is not here"
  exit 77
fi
files=$(git ls-files '*.cpp' '*.hpp' '*.h' '*.c')
# shellcheck disable=SC2086
[ "${1:-}" = --fix ] && exec "$format" -i $files
# shellcheck disable=SC2086
exec "$format" --dry-run -Werror $files
