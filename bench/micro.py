"""The programs of Google Benchmark beside the code: unwinding one sample, adding one stack, building a table,
writing a profile."""

import json
import os
import shutil
import subprocess
import sys

import measure
from report import Row
from report_command import repeated


def google_benchmark(bench, program, pattern, seconds=0.5):
    """{name: result}; each benchmark three times, the fastest counts: the others were disturbed."""
    command = [os.path.join(measure.BUILD, "src", program), "--benchmark_format=json", "--benchmark_filter=" + pattern,
               "--benchmark_min_time=%g" % (0.1 if bench.quick else seconds), "--benchmark_repetitions=%d" % (1 if bench.quick else 3)]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    best = {}
    for result in json.loads(output)["benchmarks"]:
        if result["run_type"] != "iteration" or result.get("error_occurred"):
            continue
        name = result["run_name"]
        if name not in best or result["cpu_time"] < best[name]["cpu_time"]:
            best[name] = result
    return best


def unwinding(bench):
    """
    One recorded stack of 48 frames (registers and stack bytes) is unwound again and again, by ddprof's unwinder and by libdw with its
    caches warm; what it costs to take the sample is not in it. "Cold" is the first sample of an address space, when no rule is in the
    cache of rules.
    """
    results = google_benchmark(bench, "unwind/unwind_bench", "^(table_unwinder|libdw)")
    libdw = results["libdw"]["cpu_time"]
    rows = []
    for name, what in (("table_unwinder/remembers_outer_frames:1", "unwinding a sample of 48 frames"), ("table_unwinder_without_cache", "the same, cold")):
        ours = results[name]["cpu_time"]
        rows.append(Row(what, "%.2f µs" % (ours / 1000), "libdw %.1f µs" % (libdw / 1000), measure.ratio(ours, libdw), "≤ 1/10", ours <= libdw / 10))
    return rows


def aggregation(bench):
    """A stack that was seen before is added to the profile of a period that holds 1,000 different ones."""
    nanoseconds = google_benchmark(bench, "profile/profile_bench", "^repeated_stack/1000/48$")["repeated_stack/1000/48"]["cpu_time"]
    return [Row("adding a known stack of 48 frames", "%.2f µs" % (nanoseconds / 1000), goal="< 1 µs", met=nanoseconds < 1000)]


def tables(bench):
    """
    Time to compile `.eh_frame` into an unwind table, once per file, and the bytes that are kept for each row (one row: one stretch
    of code with the same rule). The synthetic files hold functions of eight rows, 100,000 and 1,000,000 rows in all: ten times the
    rows should take ten times as long.
    """
    results = google_benchmark(bench, "unwind/unwind_bench", "^Compile")
    rows = []
    for name, result in results.items():
        if not name.startswith("CompileFile/libLLVM"):
            continue
        per_million = result["cpu_time"] / result["rows"] * 1e6
        rows.append(Row("table of %s, %.2f M rows" % (name.split("/")[1], result["rows"] / 1e6), "%.0f ms, %.0f ms per million rows" % (result["cpu_time"], per_million),
                        goal="≤ 60 ms per million", met=per_million <= 60))
        rows.append(Row("bytes kept per row", "%.2f" % result["bytes_per_row"], goal="≤ 5", met=result["bytes_per_row"] <= 5))
    small, large = results["CompileSynthetic/100000"]["cpu_time"], results["CompileSynthetic/1000000"]["cpu_time"]
    rows.append(Row("synthetic table, 1,000,000 rows", "%.0f ms" % large, "100,000 rows: %.1f ms" % small, "x%.1f" % (large / small),
                    "linear: x10 (at most x12)", large <= 12 * small))
    return rows


def encoding(bench):
    """
    A profile of 100,000 different stacks of 40 frames becomes bytes, not compressed. Beside it `go tool pprof -proto`, which reads such a
    profile from a file and writes it again. The peak is all memory beyond the profile itself, the result included. `ddprof convert` reads and
    writes the very file that Go does, unpacking and packing included.
    """
    results = google_benchmark(bench, "encode/encode_bench", "times:0$")
    path = bench.path("stacks.pb.gz")
    maker = os.path.join(measure.ROOT, "bench", "make_profile.py")
    subprocess.run([sys.executable, maker, path, "--samples", "100000", "--stacks", "100000"], check=True)
    go_seconds = go_proto_seconds(bench, path)
    rows = []
    for name, what in (("pprof/times:0", "pprof"), ("otlp/times:0", "OTLP")):
        seconds, peak = results[name]["cpu_time"] / 1000, results[name]["peak_per_byte"]
        rows.append(beside_go("writing %s of 100,000 stacks" % what, seconds, go_seconds))
        rows.append(Row("its peak memory", "x%.1f of the %.1f MB written" % (peak, results[name]["bytes"] / 1e6), goal="< x3", met=peak < 3))
    for name, what in (("again.pb.gz", "pprof"), ("again.otlp", "OTLP")):
        seconds = repeated(bench, [bench.binary, "convert", path, bench.path(name)])[0]
        rows.append(beside_go("ddprof convert of the same file to %s" % what, seconds, go_seconds))
    return rows


def beside_go(what, seconds, go_seconds):
    if go_seconds is None:
        return Row(what, "%.0f ms" % (seconds * 1000), "go is not installed")
    return Row(what, "%.0f ms" % (seconds * 1000), "go tool pprof -proto %.2f s" % go_seconds, measure.ratio(seconds, go_seconds), "≤ 1.0", seconds <= go_seconds)


def go_proto_seconds(bench, path):
    if shutil.which("go") is None:
        return None
    return repeated(bench, ["go", "tool", "pprof", "-proto", "-symbolize=none", "-output", bench.path("go.pb.gz"), path])[0]
