#!/bin/sh
# Installs the Debian packages that are missing. Groups: build (make build, make demo), check (make check, with build), test (make test,
# with build), matrix (make matrix, with test), root (tools/bare_root.sh). Quick when they are all there. `bootstrap.sh --list GROUP…` prints their names:
# tools/check_packages.py holds the build to them.
set -eu

# libdw-dev: dwarf.h, the constants of DWARF. The library itself is not linked. Boost by its version: Debian 12's default, 1.74, has no
# Boost.JSON. clang only recommends its sanitizers.
build="g++ cmake ninja-build pkg-config libfmt-dev libabsl-dev libprotozero-dev zlib1g-dev libiberty-dev
       libzstd-dev liblzma-dev libssl-dev libboost1.81-dev libcapstone-dev libdw-dev"
check="clang-format libgtest-dev libgmock-dev libbenchmark-dev libelf-dev python3 xz-utils dwz binutils"
test="$check clang libclang-rt-14-dev clang-tidy lld elfutils golang-go rustc linux-perf binutils llvm llvm-19 util-linux sqlite3 redis-server nodejs npm
      chromium python3-jsonschema python3-yaml python3-werkzeug debuginfod openssl zstd protobuf-compiler
      tini sudo libcap2-bin nginx-light zsh fish groff-base mandoc systemd musl-tools default-jdk-headless"
matrix="ffmpeg perl gzip"
root="mmdebstrap git"
# Debian 13 calls some of them otherwise, and has dwp in a package of its own.
if ! grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release; then
  build=$(echo "$build" | sed 's/libboost1.81-dev/libboost1.83-dev/')
  test=$(echo "$test binutils-gold" | sed 's/libclang-rt-14-dev/libclang-rt-19-dev/')
  check="$check binutils-gold"
fi

list=""
[ "${1:-}" != --list ] || { list=yes; shift; }
wanted=""
for group in "$@"; do
  case $group in
    build) wanted="$wanted $build" ;;
    check) wanted="$wanted $check" ;;
    test) wanted="$wanted $test" ;;
    matrix) wanted="$wanted $matrix" ;;
    root) wanted="$wanted $root" ;;
    *) echo "bootstrap: unknown group $group" >&2; exit 2 ;;
  esac
done
# shellcheck disable=SC2086
[ -z "$list" ] || { printf '%s\n' $wanted; exit 0; }

missing=""
for package in $wanted; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed && continue
  # A toolchain that is already on the PATH (rustup, nvm) serves as well as Debian's.
  case $package in
    rustc | nodejs | npm | default-jdk-headless)
      command -v "$(echo "$package" | sed 's/nodejs/node/; s/default-jdk-headless/java/')" >/dev/null 2>&1 && continue ;;
  esac
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "bootstrap: not a Debian system; install the equivalents of:$missing" >&2
  exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "bootstrap: packages are missing, and installing them needs root or sudo; as root: apt-get update && apt-get install --no-install-recommends$missing" >&2
    exit 1
  fi
  sudo=sudo
fi
echo "bootstrap: installing$missing"
# A prompt for a password goes to the terminal. sudo clears the environment: env sets it behind sudo.
# shellcheck disable=SC2086
if ! { $sudo apt-get update -qq &&
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
  echo "bootstrap: not installed; as root: apt-get update && apt-get install --no-install-recommends$missing" >&2
  exit 1
fi
