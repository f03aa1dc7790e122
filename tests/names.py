#!/usr/bin/env python3
"""Names, files, lines and inlined calls of real programs against other tools, for every layout of debug information.

Each row is one program in one layout. It is profiled, and every sampled address in it is given to a judge that reads the debug
information of the same build: llvm-symbolizer, or `go tool addr2line` and the symbol table where it has none. A frame is right
when linker name, file and line are equal; the whole chain of inlined calls is compared, innermost first.
"""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "system"))
import pprof  # noqa: E402

REPOSITORY = os.path.dirname(HERE)
PUPPETS = os.path.join(HERE, "puppets")
FEW_ADDRESSES = 20

Frame = collections.namedtuple("Frame", "function file line")
Row = collections.namedtuple("Row", "name build judge")


class Build:
    """A folder in which one program is built and taken apart."""

    def __init__(self, folder):
        self.folder = folder
        self.program = os.path.join(folder, "program")
        self.original = os.path.join(folder, "original")  # with all debug information, for the judge

    def run(self, *command, **environment):
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=dict(os.environ, **environment))
        if done.returncode != 0:
            raise RuntimeError("%s\n%s" % (" ".join(command), done.stdout))
        return done.stdout

    def keep_original(self):
        shutil.copy2(self.program, self.original)

    def separate(self):
        self.keep_original()
        self.run("objcopy", "--only-keep-debug", "program", "program.debug")
        self.run("objcopy", "--strip-all", "--add-gnu-debuglink=program.debug", "program")

    def compress(self, kind):
        self.keep_original()
        self.run("objcopy", "--compress-debug-sections=" + kind, "program")

    def dwz(self):
        """Two programs with common debug information: what they share goes into a third file."""
        self.keep_original()
        shutil.copy2(self.program, os.path.join(self.folder, "twin"))
        self.run("dwz", "-m", "common.debug", "program", "twin")

    def strip_debug(self):
        self.keep_original()
        self.run("objcopy", "--strip-debug", "program")

    def strip_all(self):
        self.keep_original()
        self.run("objcopy", "--strip-all", "program")


def compile_cpp(compiler, *flags):
    def build(place):
        place.run(compiler, "-O2", "-fno-omit-frame-pointer", *flags, "-o", "program", os.path.join(PUPPETS, "inline_chain.cpp"))
    return build


def compile_rust(*flags):
    def build(place):
        place.run("rustc", "-O", "-g", *flags, "-o", "program", os.path.join(PUPPETS, "inline_chain.rs"))
    return build


def compile_go(*flags):
    def build(place):
        place.run("go", "build", *flags, "-o", "program", os.path.join(PUPPETS, "inline_chain.go"), GO111MODULE="off",
                  GOCACHE=os.path.join(REPOSITORY, "build", "names", "go_cache"))
    return build


def then(build, *steps):
    def both(place):
        build(place)
        for step in steps:
            step(place)
    return both


def rows():
    for compiler in ("g++", "clang++"):
        full = compile_cpp(compiler, "-g")
        for version in (2, 3, 4, 5):
            yield Row("%s, DWARF %d" % (compiler, version), compile_cpp(compiler, "-gdwarf-%d" % version), by_llvm)
        yield Row(compiler + ", split", compile_cpp(compiler, "-g", "-gsplit-dwarf"), by_llvm)
        yield Row(compiler + ", split, DWARF 4", compile_cpp(compiler, "-gdwarf-4", "-gsplit-dwarf"), by_llvm)
        yield Row(compiler + ", separate", then(full, Build.separate), by_llvm)
        yield Row(compiler + ", compressed (zlib)", then(full, lambda place: place.compress("zlib")), by_llvm)
        yield Row(compiler + ", compressed (zstd)", then(full, lambda place: place.compress("zstd")), by_llvm)
        yield Row(compiler + ", dwz", then(compile_cpp(compiler, "-gdwarf-4"), Build.dwz), by_llvm)
        yield Row(compiler + ", no debug information", then(full, Build.strip_debug), by_symbols)
    yield Row("rustc", compile_rust(), by_llvm)
    yield Row("rustc, v0 names", compile_rust("-C", "symbol-mangling-version=v0"), by_llvm)
    yield Row("rustc, split", compile_rust("-C", "split-debuginfo=unpacked"), by_llvm)
    yield Row("rustc, package", compile_rust("-C", "split-debuginfo=packed"), by_llvm)
    yield Row("rustc, separate", then(compile_rust(), Build.separate), by_llvm)
    yield Row("rustc, compressed (zlib)", then(compile_rust(), lambda place: place.compress("zlib")), by_llvm)
    yield Row("rustc, dwz", then(compile_rust(), Build.dwz), by_llvm)
    yield Row("rustc, no debug information", then(compile_rust(), Build.strip_debug), by_symbols)
    yield Row("go, compressed by its linker", compile_go(), by_llvm)
    yield Row("go", compile_go("-ldflags=-compressdwarf=false"), by_llvm)
    yield Row("go, separate", then(compile_go(), Build.separate), by_llvm)
    yield Row("go, no debug information", then(compile_go(), Build.strip_debug), by_llvm)
    yield Row("go, stripped", then(compile_go(), Build.strip_all), by_llvm)


def judged_file(place):
    return place.original if os.path.exists(place.original) else place.program


def by_llvm(place, addresses):
    """Chains of the original build, innermost first, by address."""
    command = [symbolizer(), "--obj=" + judged_file(place), "--no-demangle", "--inlines", "--output-style=JSON", "--functions=linkage"]
    done = subprocess.run(command, input="\n".join("0x%x" % a for a in addresses) + "\n", stdout=subprocess.PIPE, text=True,
                          check=True, cwd=place.folder)
    answers = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        for one in found if isinstance(found, list) else [found]:
            frames = [Frame(s["FunctionName"], s["FileName"], s["Line"]) for s in one.get("Symbol", [])]
            answers[int(one["Address"], 16)] = frames
    return answers


def by_symbols(place, addresses):
    """Only names: what the symbol table says."""
    return {address: [frames[-1]._replace(file="", line=0)] for address, frames in by_llvm(place, addresses).items() if frames}


def symbolizer():
    for version in range(25, 13, -1):
        path = shutil.which("llvm-symbolizer-%d" % version)
        if path:
            return path
    return "llvm-symbolizer"


def load_segments(path):
    text = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        parts = line.split()
        if parts and parts[0] == "LOAD":
            yield int(parts[1], 16), int(parts[2], 16), int(parts[4], 16)


def elf_address(segments, location):
    offset = location.address - location.mapping.start + location.mapping.offset
    for start, address, size in segments:
        if start <= offset < start + size:
            return offset - start + address
    return None


def record(binary, place):
    path = os.path.join(place.folder, "profile.pb.gz")
    cache = os.path.join(place.folder, "cache")
    done = subprocess.run([binary, "record", "-F", "999", "-O", path, "--", place.program, "0.7"], cwd=place.folder, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ, XDG_CACHE_HOME=cache))
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return pprof.read(path)


def sampled_chains(profile, place):
    segments = list(load_segments(place.program))
    chains = {}
    for location in profile.locations:
        if location.mapping is None or not os.path.exists(location.mapping.path):
            continue
        if os.path.samefile(location.mapping.path, place.program):
            address = elf_address(segments, location)
            chains[address] = [Frame(call.linker_name, call.file, call.line) for call in location.calls]
    return chains


def same_file(ours, theirs):
    return ours == theirs or os.path.normpath(ours) == os.path.normpath(theirs)


def symbols_by_address(path):
    """Names that share an address: identical functions are folded into one."""
    text = subprocess.run(["nm", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    at, names = {}, collections.defaultdict(set)
    for parts in map(str.split, text.splitlines()):
        if len(parts) == 3:
            at[parts[2]] = parts[0]
            names[parts[0]].add(parts[2])
    return {name: names[address] for name, address in at.items()}


def go_lines_at(row, place, address):
    """What Go's own tool reads from the table of its runtime, for programs that have nothing else; None for others."""
    if not row.name.startswith("go"):
        return None
    done = subprocess.run(["go", "tool", "addr2line", judged_file(place)], input="0x%x\n" % address, stdout=subprocess.PIPE, text=True)
    return lambda: done.stdout.splitlines()[-1] if done.stdout else ""


# Differences that are not errors, with the reason.
def explanation(ours, theirs, aliases, go_lines):
    if go_lines and ours and theirs and ours[-1].function == re.sub(r"\.abi0$", "", theirs[-1].function):
        if "%s:%d" % (ours[0].file, ours[0].line) == go_lines():
            return "as go tool addr2line says: Go's own table"
    if ours and theirs and ours[:-1] == theirs[:-1] and ours[-1].function in aliases.get(theirs[-1].function, ()):
        if is_same([ours[-1]._replace(function="")], [theirs[-1]._replace(function="")]):
            return "another name of the same code"
    if len(ours) == 1 and ours[0].function.endswith("@plt"):
        return "an entry of the PLT: the judge names the nearest symbol"
    if len(ours) == len(theirs) == 1 and ours[0].function == theirs[0].function and ours[0].line == theirs[0].line == 0 and not ours[0].file:
        return "no line: the judge gives the file of the symbol table"
    if not theirs or all(frame.function in ("", "??") for frame in theirs):
        return "the judge knows nothing here"
    if len(ours) == len(theirs):
        pairs = list(zip(ours, theirs))
        if all(same_file(a.file, b.file) and a.line == b.line for a, b in pairs):
            if all(a.function == b.function or qualified(a.function, b.function) for a, b in pairs):
                return "without a linker name: ours has its namespaces"
        if all(a.function == b.function and a.line == b.line for a, b in pairs):
            if all(os.path.basename(a.file) == os.path.basename(b.file) for a, b in pairs):
                return "the same file by another path"
    return None


def qualified(ours, theirs):
    return ours.endswith("::" + theirs) or ours.endswith("." + theirs)


def is_same(ours, theirs):
    return len(ours) == len(theirs) and all(
        a.function == b.function and same_file(a.file, b.file) and a.line == b.line for a, b in zip(ours, theirs))


def judge(row, place, profile):
    chains = sampled_chains(profile, place)
    truth = row.judge(place, sorted(chains))
    result = collections.Counter()
    reasons, wrong = collections.Counter(), []
    aliases = symbols_by_address(judged_file(place))
    for address, ours in sorted(chains.items()):
        theirs = truth.get(address, [])
        result["addresses"] += 1
        result["frames"] += len(ours)
        if is_same(ours, theirs):
            result["equal"] += 1
        elif explanation(ours, theirs, aliases, go_lines_at(row, place, address)):
            reasons[explanation(ours, theirs, aliases, go_lines_at(row, place, address))] += 1
        else:
            wrong.append((address, ours, theirs))
    return result, reasons, wrong


def show(row, result, reasons, wrong, verbose):
    verdict = "ok" if not wrong and result["addresses"] >= FEW_ADDRESSES else "WRONG"
    note = "; ".join("%d: %s" % (count, reason) for reason, count in reasons.most_common())
    if result["addresses"] < FEW_ADDRESSES:
        note = "too few addresses to tell"
    print("%-32s %9d %7d %7d %9d %6d  %-5s %s" % (row.name, result["addresses"], result["frames"], result["equal"],
                                               sum(reasons.values()), len(wrong), verdict, note), flush=True)
    for address, ours, theirs in wrong[:verbose]:
        print("    0x%x" % address)
        for title, frames in (("ddprof", ours), ("judge", theirs)):
            for frame in frames:
                print("      %-6s %s %s:%d" % (title, frame.function, frame.file, frame.line))
    return verdict == "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.path.join(REPOSITORY, "build", "release", "ddprof"))
    parser.add_argument("--only", default="", help="rows whose name matches this expression")
    parser.add_argument("--verbose", type=int, default=3, metavar="N", help="wrong addresses to show per row")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    chosen = [row for row in rows() if re.search(options.only, row.name)]
    print("%-32s %9s %7s %7s %9s %6s" % ("program", "addresses", "frames", "equal", "explained", "wrong"))
    failed = 0
    for row in chosen:
        with tempfile.TemporaryDirectory(prefix="ddprof_names_") as folder:
            place = Build(folder)
            row.build(place)
            failed += not show(row, *judge(row, place, record(binary, place)), options.verbose)
    print("%d of %d rows agree with their judge on every sampled address" % (len(chosen) - failed, len(chosen)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
