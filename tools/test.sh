#!/bin/bash
# Everything that `make test` runs, with one count at the end. `tools/test.sh quick` leaves out what takes minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
mode=${1:-all}
jobs=$(nproc)
passed=0 failed=0 skipped=0
began=$SECONDS

# A check that is one test: its name, then the command. Status 77: it cannot run here, and said why.
check() {
  local name=$1 before=$SECONDS log status
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1
  status=$?
  if [ "$status" = 0 ]; then
    passed=$((passed + 1))
    echo "ok      $name ($((SECONDS - before)) s)"
  elif [ "$status" = 77 ]; then
    skipped=$((skipped + 1))
    echo "skipped $name: $(tail -n 1 "$log")"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 60 "$log"
  fi
  rm -f "$log"
}

# A ctest run: its tests are counted one by one.
ctests() {
  local name=$1 folder=$2 before=$SECONDS log
  shift 2
  log=$(mktemp)
  ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@" >"$log" 2>&1
  local total bad missed
  total=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$log")
  bad=$(sed -n 's/.* \([0-9]*\) tests failed out of .*/\1/p' "$log")
  missed=$(grep -c '\*\*\*Skipped' "$log")
  if [ -z "$total" ]; then bad=1 total=1 missed=0; fi
  passed=$((passed + total - bad - missed)) failed=$((failed + bad)) skipped=$((skipped + missed))
  echo "$([ "$bad" = 0 ] && echo "ok     " || echo "FAILED ") $name: $total tests, $bad failed, $missed skipped ($((SECONDS - before)) s)"
  # Whoever skips says why; so do we.
  grep -E 'SKIP|skipped [^0-9]' "$log" | sort -u | head -20
  if [ "$bad" != 0 ]; then
    say_failures <"$log"
    grep -vE '^ *[0-9]+/[0-9]+ Test .* Passed|^ +Start +[0-9]+:' "$log" | tail -n 200
  fi
  rm -f "$log"
}

# What failed and its first words, a line each, for whoever sees only lines that say FAILED.
say_failures() {
  grep -A3 -E '^(.*: Failure|FAIL: .*|ERROR: .*|AssertionError.*|[A-Za-z]*Error: .*)$|\*\*\*(Failed|Timeout|Exception)|^\[  FAILED' | cut -c 1-200 | head -n 20 | sed 's/^/FAILED    /'
}

# A check that takes only what others leave of the machine: begins now, is counted at its end, and may be made to stand still.
begin_meanwhile() {
  meanwhile_name=$1 meanwhile_log=$(mktemp)
  shift
  setsid sh -c 'echo 19 >/proc/self/autogroup; exec nice -n 19 "$@"' sh "$@" >"$meanwhile_log" 2>&1 &
  meanwhile_pid=$!
}
signal_meanwhile() { kill "$1" -- "-$meanwhile_pid" 2>/dev/null; }
end_meanwhile() {
  # It is waited for now: where others take all of the machine, nothing would be left for it.
  { renice -n 0 -g "$meanwhile_pid" && echo 0 >"/proc/$meanwhile_pid/autogroup"; } >/dev/null 2>&1
  check "$meanwhile_name" wait "$meanwhile_pid"
  [ "$failed" = 0 ] || tail -n 60 "$meanwhile_log"
  rm -f "$meanwhile_log"
}

build() {
  cmake --preset "$1" >/dev/null && cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# The unit tests of a build, one process per module: starting one per test takes longer than the tests, under sanitizers. Most of them wait.
# Which of them, as for --gtest_filter, may follow.
unit_tests() {
  local name=$1 folder=$2 before=$SECONDS logs log total=0 bad=0 missed=0
  logs=$(mktemp -d)
  find "$folder/src" "$folder/tests" -name '*_test' -type f -perm -100 | sort |
    GTEST_FILTER=${3:-*} xargs -P "$((2 * jobs))" -I{} sh -c 'timeout 600 {} --gtest_brief=1 >"$0/$(basename {})" 2>&1 || touch "$0/$(basename {}).failed"' "$logs"
  for log in "$logs"/*_test; do
    total=$((total + $(count_of '\[==========\] \([0-9]*\) test.*' "$log")))
    missed=$((missed + $(count_of '\[  SKIPPED \] \([0-9]*\) test.*' "$log")))
    if [ -e "$log.failed" ]; then
      # A module that ended before it said so is one failure at least.
      local failures
      failures=$(count_of ' *\([0-9]*\) FAILED TEST.*' "$log")
      bad=$((bad + (failures > 0 ? failures : 1)))
      say_failures <"$log"
      tail -n 100 "$log"
    fi
  done
  passed=$((passed + total - bad - missed)) failed=$((failed + bad)) skipped=$((skipped + missed))
  echo "$([ "$bad" = 0 ] && [ "$total" != 0 ] && echo "ok     " || echo "FAILED ") $name: $total tests, $bad failed, $missed skipped ($((SECONDS - before)) s)"
  [ "$total" != 0 ] || failed=$((failed + 1))
  grep -h 'Skipped$' -A1 "$logs"/*_test | sort -u | head -20
  rm -rf "$logs"
}

# A filter of the unit tests that cannot run under tsan, which has a thread of its own in each process and makes each fork a matter of
# milliseconds. These count the threads of processes that they fork, or measure the time of short ones:
not_under_tsan() {
  local names=(KnowsTheExactTimeOfTasksTooShortToBeSampled FollowsADaemonThatOutlivesItsParent SamplesTheNamedProcessesAlone
    EndsWhenTheLastOfSeveralProcessesHasEnded ChangesToCpusUnderAForkStorm)
  printf -- '-%s' "$(printf 'PerfCollector.%s:' "${names[@]}")"
}

# The last number that this expression finds in a file; 0 without one.
count_of() {
  local found
  found=$(sed -n "s/^$1/\1/p" "$2" | tail -n 1)
  echo "${found:-0}"
}

# Every fuzzer for a few seconds, as many at once as there are processors. Each is a test.
fuzzers() {
  local before=$SECONDS logs fuzzer
  logs=$(mktemp -d)
  find build/asan -name '*_fuzz' -type f -perm -100 2>/dev/null | sort |
    xargs -P "$jobs" -I{} sh -c 'tools/fuzz.sh {} 1 >"$0/$(basename {})" 2>&1 || touch "$0/$(basename {}).failed"' "$logs"
  for fuzzer in "$logs"/*_fuzz; do
    if [ -e "$fuzzer.failed" ]; then
      failed=$((failed + 1))
      echo "FAILED  fuzz: $(basename "$fuzzer")"
      tail -n 60 "$fuzzer"
    else
      passed=$((passed + 1))
    fi
  done
  echo "ran     fuzz: $(find "$logs" -name '*_fuzz' | wc -l) fuzzers ($((SECONDS - before)) s)"
  rm -rf "$logs"
}

check "layering" tools/check_layering.py
check "format" tools/check_format.sh
check "build: release" build release --target ddprof read_all record_events
check "packages: the build list holds all that the build read" tools/check_packages.py
check "documentation is current" tools/check_docs.sh
if [ "$mode" = quick ]; then
  check "build: unit tests" build dev
  ctests "unit tests" build/dev -L unit -j "$jobs"
else
  check "artefact: libraries and size" tools/check_artefact.sh
  check "build: puppets, and every header alone" build dev --target puppets headers
  check "outputs in the documents are like real ones" tools/refresh_examples.py --check
  check "configure: asan and ubsan" cmake --preset asan
  begin_meanwhile "clang-tidy" tools/check_tidy.sh
  ctests "system tests, several at once" build/dev -L system -LE quiet -j "$((3 * jobs))"  # most of them wait
  signal_meanwhile -STOP
  ctests "system tests that measure" build/dev -L system -L quiet
  signal_meanwhile -CONT
  end_meanwhile
  check "build: asan and ubsan" build asan
  check "configure: tsan" cmake --preset tsan
  # The modules that start threads, and the whole program, run under tsan.
  begin_meanwhile "build: tsan" cmake --build --preset tsan -j "$jobs" --target ddprof \
    {base,net,debugfile,process,collect,collect_perf,export,session,runtime,cli}_test
  unit_tests "unit tests under asan and ubsan" build/asan
  ctests "system tests under asan and ubsan" build/asan -L sanitizer -j "$jobs"
  end_meanwhile
  fuzzers
  # Tests of what several processes share fork and then start threads, which tsan allows only if it is told to.
  TSAN_OPTIONS=die_after_fork=0 unit_tests "unit tests under tsan" build/tsan "$(not_under_tsan)"
  ctests "system tests under tsan" build/tsan -L threads -j "$jobs"
fi

echo "$passed passed, $failed failed, $skipped skipped, in $((SECONDS - began)) s"
[ "$failed" = 0 ]
