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

# The library that is loaded into programs: what it takes the place of, what it asks of libc and of nobody else, and how large it is.
library=${DDPROF_LIBRARY:-build/release/libddprof.so}
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
{
  echo "defined:"
  nm -D --defined-only "$library" | sed 's/^[0-9a-f]* //' | sort
  echo "undefined:"
  nm -D --undefined-only "$library" | sed 's/^ *//' | sort
} >"$symbols"
diff -u tests/golden/artefact/libddprof_symbols.txt "$symbols"
if readelf -d "$library" | grep -E '\((NEEDED|INIT|INIT_ARRAY|FINI|FINI_ARRAY|TEXTREL|RPATH|RUNPATH)\)'; then
  echo "$library asks for something when it is loaded" >&2
  exit 1
fi
readelf -d "$library" | grep -q NODELETE
size=$(strip --strip-unneeded -o "$symbols" "$library" && stat -c %s "$symbols")
echo "size of libddprof.so: $size bytes"
[ "$size" -lt 75000 ]
