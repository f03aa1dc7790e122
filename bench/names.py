"""Lines and inlined calls from large debug information, beside llvm-symbolizer."""

import concurrent.futures
import os
import random
import re
import shutil
import subprocess

import measure
from report import Row
from report_command import peak_mib, repeated

UNITS = 40
COPIES = 9
ADDRESSES = 10000


def symbolizer():
    found = [shutil.which("llvm-symbolizer-%d" % version) for version in range(25, 13, -1)] + [shutil.which("llvm-symbolizer")]
    return next((path for path in found if path), None)


def build_unit(folder, number):
    path = os.path.join(folder, "unit%d.o" % number)
    if not os.path.exists(path):
        source = os.path.join(measure.ROOT, "bench", "programs", "much_debug_information.cpp")
        subprocess.run(["g++", "-std=c++20", "-g", "-O2", "-DUNIT=%d" % number, "-c", source, "-o", path + ".part"], check=True)
        os.rename(path + ".part", path)
    return path


def build_programs():
    """The large one, and the huge one, which is linked from the same objects several times over. Kept for the next run: minutes."""
    folder = os.path.join(measure.ROOT, "build", "much_debug_information")
    large, huge = os.path.join(folder, "large"), os.path.join(folder, "huge")
    if os.path.exists(huge):
        return large, huge
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "main.cpp"), "w") as file:
        numbers = range(UNITS)
        file.write("#include <string>\n" + "".join("std::size_t run_%d(int, const std::string&);\n" % n for n in numbers))
        file.write("int main(int argc, char** argv) { return 0%s; }\n" % "".join(" + (run_%d(argc, argv[0]) == 1)" % n for n in numbers))
    subprocess.run(["g++", "-c", "main.cpp", "-o", "main.o"], cwd=folder, check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        units = list(pool.map(lambda number: build_unit(folder, number), range(UNITS)))
    subprocess.run(["g++", "-o", large, "main.o", *units], cwd=folder, check=True)
    copies = []
    for copy in range(COPIES):
        place = os.path.join(folder, "copy%d" % copy)
        os.makedirs(place, exist_ok=True)
        for unit in units:
            copies.append(os.path.join(place, os.path.basename(unit)))
            if not os.path.exists(copies[-1]):
                os.link(unit, copies[-1])
    subprocess.run(["g++", "-Wl,--allow-multiple-definition", "-o", huge, "main.o", *units, *copies], cwd=folder, check=True)
    return large, huge


def section_bytes(path, pattern):
    text = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = re.findall(r"\] (\S+) +\S+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", text)
    return [(int(address, 16), int(size, 16)) for name, address, _, size in rows if re.match(pattern, name)]


def write_addresses(bench, program, name, count):
    """Sorted, spread evenly at random over the code."""
    (begin, size), = section_bytes(program, r"\.text$")
    chosen = sorted(random.Random(1).sample(range(begin, begin + size), count))
    path = bench.path(name)
    with open(path, "w") as file:
        file.write("".join("0x%x\n" % address for address in chosen))
    return path


def fed(command, path):
    return ["sh", "-c", 'exec "$@" < "$0"', path, *command]


def names(bench):
    """
    10,000 addresses, at random over the code of a C++ program (40 units full of templates, `bench/programs/much_debug_information.cpp`),
    to functions, files, lines and inlined calls, by the code that names the frames of a profile (`bench/programs/symbolize.cpp`), and by the
    newest llvm-symbolizer that is installed. Both get the sorted list and write their answers. "Kept" is a second run, which finds the
    names that the first one left in the cache folder. The huge program is linked from the same objects ten times over; "pages dropped" reads
    it from the disk.
    """
    judge = symbolizer()
    if judge is None:
        return [Row("names from debug information", "llvm-symbolizer is not installed")]
    large, huge = build_programs()
    tool = bench.program("symbolize")
    addresses = write_addresses(bench, large, "addresses", ADDRESSES)
    hot = write_addresses(bench, huge, "hot_addresses", 256)
    dwarf = sum(size for _, size in section_bytes(large, r"\.debug_")) >> 20
    ours, ours_mib = repeated(bench, fed([tool, large], addresses))
    theirs, theirs_mib = repeated(bench, fed([judge, "--obj=" + large, "--inlines"], addresses))
    cache = bench.path("names_cache")
    peak_mib(bench, fed([tool, large, cache], addresses))
    kept, _ = repeated(bench, fed([tool, large, cache], addresses))
    first, _ = repeated(bench, fed([tool, huge], hot))
    subprocess.run(["dd", "of=" + huge, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"], check=True, stderr=subprocess.DEVNULL)
    first_cold, _ = peak_mib(bench, fed([tool, huge], hot))
    return [
        Row("10,000 addresses of %d MiB of DWARF to lines and inlines" % dwarf, "%.2f s" % ours, "llvm-symbolizer %.2f s" % theirs,
            measure.ratio(ours, theirs), "≤ 1", ours <= theirs),
        Row("its peak memory", "%.0f MiB" % ours_mib, "%.0f MiB" % theirs_mib, measure.ratio(ours_mib, theirs_mib), "≤ 1/2",
            ours_mib * 2 <= theirs_mib),
        Row("the same, kept from an earlier run", "%.3f s" % kept, "llvm-symbolizer %.2f s" % theirs, measure.ratio(kept, theirs), "≤ 1/50",
            kept * 50 <= theirs),
        Row("first 256 names of a file of %d MiB" % (os.path.getsize(huge) >> 20), "%.2f s, pages dropped %.2f s" % (first, first_cold), goal="< 2 s",
            met=max(first, first_cold) < 2),
    ]
