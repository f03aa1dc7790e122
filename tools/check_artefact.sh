#!/bin/sh
# The shipped binary needs libc and nothing else, and stays small.
set -eu
cd "$(dirname "$0")/.."
binary=build/release/ddprof
extra=$(readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|ld-linux-x86-64)\.so' || true)
if [ -n "$extra" ]; then
  echo "$binary needs more than libc: $extra" >&2
  exit 1
fi
strip -o build/release/ddprof.stripped "$binary"
size=$(stat -c %s build/release/ddprof.stripped)
rm build/release/ddprof.stripped
echo "stripped size: $size bytes"
# OpenSSL, for debuginfod and uploads, is 4.6 MB of it.
[ "$size" -lt 13000000 ]
