#!/bin/sh
# clang-tidy with the allow-list of .clang-tidy over everything that ships, in the large translation units of the asan build:
# eight times as fast as file by file. The analyzer looks at functions of included files only if it is told to; its shallow mode, and 8,000
# steps of a function, take a tenth of the time of the deep one.
set -eu
cd "$(dirname "$0")/.."
# libddprof.so is compiled file by file.
units=$(find build/asan/src -name '*.cxx' -path '*/Unity/*' -not -path '*_test.dir/*' -not -path '*_bench.dir/*' -not -path '*_fuzz.dir/*' -printf '%s %p\n' |
  sort -rn | cut -d' ' -f2)  # those that take longest first
[ -n "$units" ] || { echo "build/asan has no translation units: cmake --preset asan"; exit 1; }
# shellcheck disable=SC2086
printf '%s\n' $units src/symbol/demangle.cpp $(ls src/inject/*.cpp | grep -v _test.cpp) |
  xargs -P "$(nproc)" -n 1 clang-tidy -p build/asan --quiet --extra-arg=-Xclang --extra-arg=-analyzer-opt-analyze-headers \
    --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=mode=shallow,max-nodes=8000 2>/dev/null
