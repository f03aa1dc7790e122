#!/bin/sh
# Runs one fuzzer for a bounded time over its seeds: tools/fuzz.sh build/asan/.../elf_file_fuzz 60
set -eu
fuzzer=$1
seconds=$2
root=$(cd "$(dirname "$0")/.." && pwd)
seeds=$root/tests/fuzz/$(basename "$fuzzer")
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
[ -d "$seeds" ] && set -- "$corpus" "$seeds" || set -- "$corpus"
"$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -artifact_prefix="$corpus/" "$@"
