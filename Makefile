# Everything a person types. The build itself is CMake (CMakePresets.json); this file only strings the steps together.
.DEFAULT_GOAL := build
.PHONY: bootstrap build demo test check fuzz coverage matrix bench install uninstall docs clean

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600

bootstrap:            ## install the Debian packages that are missing
	@tools/bootstrap.sh build
build: bootstrap      ## the optimised binary: build/release/ddprof
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target ddprof
demo: build           ## profile a bundled program and show the result
	@tools/demo.sh
test:                 ## install, build and run every test that this machine can run
	@tools/bootstrap.sh build test
	@tools/test.sh
check:                ## the quick part of the tests: unit tests and static checks
	@tools/bootstrap.sh build check
	@tools/test.sh quick
fuzz:                 ## every fuzzer for FUZZ_SECONDS (600), from the inputs that earlier runs found: build/corpora
	@tools/bootstrap.sh build test
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz_all.sh build/fuzz $(FUZZ_SECONDS) build/corpora $(JOBS)
coverage:             ## what the unit tests reach, a row per module
	@tools/bootstrap.sh build test
	@tools/coverage.py --jobs $(JOBS)
matrix: build         ## how many stacks reach their root, for programs of all kinds
	@tools/bootstrap.sh build test matrix
	@tests/matrix.py
bench:                ## measure for half an hour, beside the peers found on this machine; writes docs/overhead.md
	@tools/bootstrap.sh build test
	@bench/run.py --long
install: build        ## the program, its manual pages and completions, the library and its headers, below PREFIX
	@tools/install.sh install "$(DESTDIR)$(PREFIX)"
uninstall:            ## remove what install wrote
	@tools/install.sh uninstall "$(DESTDIR)$(PREFIX)"
docs: build           ## regenerate what is generated: docs/commands.md, and the outputs that the documents show (as root)
	@build/release/ddprof --help-markdown > docs/commands.md
	@cmake --preset dev >/dev/null && cmake --build --preset dev -j $(JOBS) --target puppets
	@tools/refresh_examples.py
clean:
	rm -rf build
