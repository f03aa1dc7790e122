#!/bin/sh
# Profiles the bundled program and shows the result: what `make demo` ends with.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/demo
g++ -O2 -g -std=c++20 -pthread examples/shop.cpp -o build/demo/shop
# Debian's kernels have kernel.perf_event_paranoid = 3: users may not profile even their own programs. Then the demo is root's.
sudo=""
rm -f build/demo/allowed.pb.gz
reason=$(build/release/ddprof record -O build/demo/allowed.pb.gz -- true 2>&1 >/dev/null) || true
if [ ! -s build/demo/allowed.pb.gz ] && [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null 2>&1; then
  printf '%s\n\nThe demo goes on with sudo:\n' "$reason"
  sudo="sudo "
fi
rm -f build/demo/allowed.pb.gz
echo "\$ ${sudo}ddprof record -O build/demo/shop.pb.gz -- build/demo/shop 3"
${sudo}build/release/ddprof record -O build/demo/shop.pb.gz -- build/demo/shop 3
echo
echo "\$ ${sudo}ddprof report build/demo/shop.pb.gz"
${sudo}build/release/ddprof report build/demo/shop.pb.gz
echo
echo "\$ ${sudo}ddprof record --preset cpu_live_heap -O build/demo/memory.pb.gz -- build/demo/shop 3"
${sudo}build/release/ddprof record --preset cpu_live_heap -O build/demo/memory.pb.gz -- build/demo/shop 3
echo
echo "\$ ${sudo}ddprof report --sample-type inuse_space build/demo/memory.pb.gz"
${sudo}build/release/ddprof report --sample-type inuse_space build/demo/memory.pb.gz
