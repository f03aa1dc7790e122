#!/bin/sh
# Profiles the bundled program and shows the result: what `make demo` ends with.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/demo
g++ -O2 -std=c++20 -pthread examples/shop.cpp -o build/demo/shop
echo "\$ ddprof record -O build/demo/shop.pb.gz -- build/demo/shop 3"
build/release/ddprof record -O build/demo/shop.pb.gz -- build/demo/shop 3
echo
echo "\$ ddprof report build/demo/shop.pb.gz"
build/release/ddprof report build/demo/shop.pb.gz
