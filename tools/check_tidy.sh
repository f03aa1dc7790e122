#!/bin/sh
# clang-tidy with the allow-list of .clang-tidy over everything that is ours; reads build/dev/compile_commands.json.
set -eu
cd "$(dirname "$0")/.."
git ls-files 'src/*.cpp' | grep -vE '_(test|fuzz|bench|main)\.cpp$' |
  xargs -P "$(nproc)" -n 4 clang-tidy -p build/dev --quiet 2>/dev/null
