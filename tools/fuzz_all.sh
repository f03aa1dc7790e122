#!/bin/sh
# Every fuzzer of a build, several at once, with a line for each: tools/fuzz_all.sh build/fuzz SECONDS CORPORA JOBS
set -eu
cd "$(dirname "$0")/.."
build=$1 seconds=$2 corpora=$3 jobs=$4
mkdir -p "$corpora"
rm -f "$corpora"/*.log
# shellcheck disable=SC2016
find "$build" -name '*_fuzz' -type f -perm -100 | sort | xargs -P "$jobs" -I{} sh -c '
  name=$(basename "$0") log=$2/$(basename "$0").log
  if tools/fuzz.sh "$0" "$1" "$2" >"$log" 2>&1; then
    echo "ok      $name: $(sed -n "s/^stat::number_of_executed_units: *//p" "$log") runs, $(ls "$2/$name" | wc -l) inputs"
  else
    echo "FAILED  $name: $log, $2/$name.failed"
    exit 1
  fi' {} "$seconds" "$corpora"
