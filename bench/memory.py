"""Resident memory of the profiler: on a program with much text, and over many periods."""

import contextlib
import os
import shutil
import statistics
import time

import measure
from report import Row

INSTANTIATIONS = """#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int n> struct Key { std::string text; bool operator<(const Key& other) const { return text < other.text; } };
template <int n> std::size_t use(const std::string& text) {
  std::map<Key<n>, std::vector<Key<n + 1>>> map;
  map[{text}].push_back({text});
  std::sort(map.begin()->second.begin(), map.begin()->second.end());
  std::function<bool(int)> small = [&](int value) { return value < n; };
  return map.size() + std::regex_match(text, std::regex("a+")) + small(n);
}
"""


def heavy_source(bench, instantiations):
    path = bench.path("heavy.cpp")
    with open(path, "w") as file:
        file.write(INSTANTIATIONS)
        for n in range(instantiations):
            file.write("template std::size_t use<%d>(const std::string&);\n" % (2 * n))
    return path


def text_mib(pid):
    """Executable bytes mapped from files."""
    total = 0
    with open("/proc/%d/maps" % pid) as file:
        for line in file:
            fields = line.split()
            if "x" in fields[1] and fields[-1].startswith("/"):
                begin, end = (int(text, 16) for text in fields[0].split("-"))
                total += end - begin
    return total / measure.MIB


def watch(bench, child, interval, look):
    """Calls look(seconds, the profiler's processes) until the target ends."""
    begin = time.monotonic()
    time.sleep(0.5)
    bench.profiler_pids()
    while child.poll() is None:
        time.sleep(interval)
        own = measure.processes_of(bench.binary)
        with contextlib.suppress(OSError):  # ended meanwhile
            if len(own) == 2:  # else one worker follows another
                look(time.monotonic() - begin, own)
    child.communicate()
    bench.wait_for_profiler_to_end()


def large_program(bench):
    """
    clang++, which maps libLLVM and libclang, compiles a long file while ddprof samples it at 99 Hz and writes a profile every five
    seconds. Resident memory of the profiler's two processes is read ten times a second; "steady" is the median of the second half. Pages of
    mapped files, which the kernel can drop at any time, count too; "anonymous" is what belongs to them alone.
    """
    compiler = shutil.which("clang++")
    if not compiler:
        return [Row("memory on a large program", "clang++ is not installed")]
    command = [compiler, "-O2", "-c", heavy_source(bench, 10 if bench.quick else 40), "-o", "/dev/null"]
    looks, texts = [], [0]

    def look(_, own):
        seen = measure.memory_kib(own)
        looks.append({key: seen[key] for key in ("VmRSS", "VmHWM", "RssAnon")})
        for process in measure.processes_of(executable):
            texts.append(text_mib(process))

    executable = os.path.realpath(compiler)
    watch(bench, bench.start(bench.ddprof_wrapper(command, period=5)), 0.1, look)
    half = looks[len(looks) // 2:]
    steady, anonymous = (statistics.median(seen[key] for seen in half) / 1024 for key in ("VmRSS", "RssAnon"))
    peak = looks[-1]["VmHWM"] / 1024
    what = "memory on a program with %.0f MiB of text" % max(texts)
    return [Row(what + ", steady", "%.1f MiB" % steady, "anonymous: %.1f MiB" % anonymous, goal="< 64 MiB", met=steady < 64),
            Row("the same, peak", "%.1f MiB" % peak)]


def growth(bench):
    """
    Two busy threads, one profile every second. The growth is the slope of a line through resident memory after the
    thirtieth period, scaled to 1,000 periods; less than 1 MiB counts as none. `bench/run.py --long` really runs 1,000 periods.
    """
    periods = 1000 if bench.long else 20 if bench.quick else 120
    looks = []
    command = bench.ddprof_wrapper([bench.puppet("nested48"), str(periods), "2"])
    watch(bench, bench.start(command), 1, lambda second, own: looks.append((second, measure.memory_kib(own)["VmRSS"] / 1024)))
    settled = [look for look in looks if look[0] > min(30, periods / 2)]
    per_thousand = measure.slope(settled) * 1000
    return [Row("memory over %d periods of 1 s" % periods, "%.2f MiB after %d, %.2f MiB at the end" % (settled[0][1], settled[0][0], settled[-1][1]),
                ratio="%+.2f MiB per 1,000" % per_thousand, goal="no growth", met=per_thousand < 1)]
