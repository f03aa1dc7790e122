#!/bin/sh
# Installs the Debian packages that building (build) and testing (test) need. Quick when they are all there.
set -eu

build="g++ cmake ninja-build pkg-config libfmt-dev libabsl-dev libprotozero-dev zlib1g-dev libiberty-dev
       libzstd-dev liblzma-dev libssl-dev libboost1.81-dev libcapstone-dev"
test="clang clang-format clang-tidy lld libgtest-dev libgmock-dev libbenchmark-dev libdw-dev libelf-dev elfutils
      golang-go rustc linux-perf python3 binutils llvm llvm-19 util-linux sqlite3 xz-utils redis-server nodejs npm
      chromium python3-jsonschema python3-yaml python3-werkzeug dwz debuginfod openssl zstd protobuf-compiler
      tini sudo libcap2-bin nginx-light zsh fish groff-base mandoc"

wanted=""
for group in "$@"; do
  case $group in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    *) echo "bootstrap: unknown group $group" >&2; exit 2 ;;
  esac
done

missing=""
for package in $wanted; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && continue
  # A toolchain that is already on the PATH (rustup, nvm) serves as well as Debian's.
  case $package in
    rustc | nodejs | npm) command -v "$(echo "$package" | sed s/nodejs/node/)" >/dev/null 2>&1 && continue ;;
  esac
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "bootstrap: not a Debian system; install the equivalents of:$missing" >&2
  exit 1
fi
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
echo "bootstrap: installing$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
