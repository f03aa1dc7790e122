#!/bin/sh
# docs/commands.md is what the option table says, no command line in the docs uses an option that does not exist, and what they cite exists.
set -eu
cd "$(dirname "$0")/.."
if ! build/release/ddprof --help-markdown | diff -u docs/commands.md -; then
  echo "docs/commands.md is not current: run make docs" >&2
  exit 1
fi
tools/check_doc_names.py
exec tools/check_doc_commands.py
