#!/bin/sh
# docs/commands.md is what the option table says, and no command line in the docs uses an option that does not exist.
set -eu
cd "$(dirname "$0")/.."
if ! build/release/ddprof --help-markdown | diff -u docs/commands.md -; then
  echo "docs/commands.md is not current: run make docs" >&2
  exit 1
fi
exec tools/check_doc_commands.py
