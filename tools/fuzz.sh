#!/bin/sh
# Runs one fuzzer for a bounded time over its seeds: tools/fuzz.sh build/asan/.../elf_file_fuzz 60 [CORPORA]
# With CORPORA, what it finds is the start of the next run: inputs in CORPORA/NAME, those that fail in CORPORA/NAME.failed.
set -eu
fuzzer=$1
seconds=$2
name=$(basename "$fuzzer")
root=$(cd "$(dirname "$0")/.." && pwd)
seeds=$root/tests/fuzz/$name
if [ $# -gt 2 ]; then
  corpus=$3/$name failures=$3/$name.failed
  mkdir -p "$corpus" "$failures"
else
  corpus=$(mktemp -d) failures=$corpus
  trap 'rm -rf "$corpus"' EXIT
fi
[ -d "$seeds" ] && set -- "$corpus" "$seeds" || set -- "$corpus"
# The worker's own limits, --max-memory 256 and half as much again: one request for memory, and all of it. The quarantine of freed
# memory, which only a sanitizer has, is kept small for it.
ASAN_OPTIONS=quarantine_size_mb=16:${ASAN_OPTIONS:-} "$fuzzer" -max_total_time="$seconds" -malloc_limit_mb=256 -rss_limit_mb=384 -timeout=10 \
  -print_final_stats=1 -artifact_prefix="$failures/" "$@"
