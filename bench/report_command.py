"""Reading a large profile, beside the reference implementation."""

import os
import shutil
import statistics
import subprocess
import sys

import measure
from report import Row


def peak_mib(bench, command):
    """Wall time and peak memory of a command; the peak is that of the greatest child so far, so each runs under its own parent."""
    script = ("import os, resource, subprocess, sys, time; begin = time.monotonic();"
              "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True);"
              "print(time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    environment = dict(os.environ, HOME=bench.folder)
    output = subprocess.run([sys.executable, "-c", script, *command], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, kib = map(float, output.split())
    return seconds, kib / 1024


def repeated(bench, command, times=3):
    """The median time of several runs, and the greatest peak."""
    runs = [peak_mib(bench, command) for _ in range(1 if bench.quick else times)]
    return statistics.median(seconds for seconds, _ in runs), max(mib for _, mib in runs)


def million_samples(bench):
    """
    A pprof of 1,000,000 samples of 40 frames, made by `bench/make_profile.py`: 200,000 different stacks of 20,000 locations in 64
    threads. `ddprof report` with all of its usual sections, beside `go tool pprof -top`, which lists functions only.
    """
    path = bench.path("million.pb.gz")
    size = ["--samples", "100000", "--stacks", "20000"] if bench.quick else []
    subprocess.run([sys.executable, os.path.join(measure.ROOT, "bench", "make_profile.py"), path, *size], check=True)
    seconds, mib = repeated(bench, [bench.binary, "report", path])
    if shutil.which("go") is None:
        return [Row("report of a million samples", "%.2f s, %.0f MiB" % (seconds, mib), goal="< 2 s", met=seconds < 2)]
    go_seconds, go_mib = repeated(bench, ["go", "tool", "pprof", "-top", "-symbolize=none", path], times=1)  # minutes
    return [Row("report of a million samples", "%.2f s" % seconds, "go tool pprof -top %.2f s" % go_seconds, measure.ratio(seconds, go_seconds),
                "< 2 s, faster", seconds < min(2, go_seconds)),
            Row("its peak memory", "%.0f MiB" % mib, "%.0f MiB" % go_mib, measure.ratio(mib, go_mib))]
