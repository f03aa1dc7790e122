"""What the profiler itself uses: CPU time for a whole run, per sample, until the target starts, after it
has ended, and while it idles."""

import os
import statistics
import subprocess
import time

import measure
from report import Row

FREQUENCY = 99
THREADS = 2


def end_to_end(bench):
    """
    The program `nested48` (C++ as usual: virtual calls, std::function, qsort, streams; 48 frames) burns a fixed CPU time in two
    threads. Own CPU is what the kernel charged to the whole command less what it charged to the program. ddprof's includes unwinding,
    naming and writing the profile; for perf that takes `perf record` and `perf script`. The first run after the machine was started
    reads the names of the kernel's functions from /proc/kallsyms and keeps them in a file for the others.
    """
    target = [bench.puppet("nested48"), "3" if bench.quick else "10", str(THREADS)]
    cold, *ours = [bench.run_timed(bench.ddprof_record, target).own_cpu_s for _ in range(2 if bench.quick else 4)]
    what = "record %s s at %d Hz, own CPU" % (target[1], FREQUENCY)
    if not bench.has_perf:
        return [Row(what, measure.spread(ours) + " s", "perf is not installed"), Row("the same, first run", "%.3f s" % cold)]
    record = bench.run_timed(bench.perf_record, target).own_cpu_s
    with open(os.devnull, "w") as null:
        before = os.times()
        subprocess.run(["perf", "script", "-i", bench.path("perf.data")], stdout=null, stderr=null, check=True)
        after = os.times()
    script = after.children_user + after.children_system - before.children_user - before.children_system
    own, peer = statistics.median(ours), record + script
    return [Row(what, measure.spread(ours) + " s", "perf %.3f s + script %.3f s" % (record, script), measure.ratio(own, peer), "≤ 1/5", own <= peer / 5),
            Row("the same, first run after the machine was started", "%.3f s" % cold, ratio=measure.ratio(cold, peer))]


def target_of(pid, own):
    """The child of the profiler that is none of its own processes."""
    return next(child for child in measure.children_of(pid) if child not in own)


def cost_per_thousand(bench, command, begin, end):
    """Own CPU per 1,000 samples between two moments of one run: without the start, without the end."""
    child = bench.start(command)
    try:
        def now():
            own = measure.processes_of(bench.binary) or [child.pid]
            return measure.cpu_ns(own), measure.process_cpu_ns(target_of(child.pid, own))
        time.sleep(begin)
        own_before, target_before = now()
        time.sleep(end - begin)
        own_after, target_after = now()
    finally:
        child.communicate()
    samples = (target_after - target_before) / 1e9 * FREQUENCY
    return (own_after - own_before) / 1e9 / samples * 1000, samples


def steady_state(bench):
    """
    CPU time of the profiler's processes between two moments of one run, per 1,000 samples: neither start nor end are in it. For perf it
    is `perf record` alone, which only writes stacks to a file; somebody has to unwind them later.
    """
    begin, end = (1, 4) if bench.quick else (4, 22)
    target = [bench.puppet("nested48"), str(end + 2), str(THREADS)]
    ours, samples = cost_per_thousand(bench, bench.ddprof_record(target), begin, end)
    beside = ratio = ""
    if bench.has_perf:
        perf, _ = cost_per_thousand(bench, bench.perf_record(target), begin, end)
        beside, ratio = "perf record %.4f s" % perf, measure.ratio(ours, perf)
    return [Row("own CPU per 1,000 samples, steady, over %.0f samples" % samples, "%.4f s" % ours, beside, ratio, "≤ 0.010 s", ours <= 0.010)]


def start_ms(bench, command):
    # How the command ends does not matter here: perf 6.1 sometimes aborts at its end.
    before = time.monotonic_ns()
    output = subprocess.run(command, cwd=bench.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return (int(output) - before) / 1e6


def start(bench):
    """
    From the moment before the command is started to the first thing that the program does in `main`. The bare figure is the launch of
    any program; goals are about the time with the profiler.
    """
    program = bench.program("prints_time")
    commands = {"bare": [program], "wrapper": bench.ddprof_wrapper([program]), "record": bench.ddprof_record([program])}
    if bench.has_perf:
        commands["perf"] = bench.perf_record([program])
    times = {name: [] for name in commands}
    for _ in range(5 if bench.quick else 30):
        for name, command in commands.items():
            times[name].append(start_ms(bench, command))
            bench.wait_for_profiler_to_end()
    bare = statistics.median(times["bare"])
    beside = "bare %s" % measure.spread(times["bare"], "%.1f")
    if bench.has_perf:
        beside += ", perf record %s" % measure.spread(times["perf"], "%.1f")
    rows = []
    for name, what in (("wrapper", "`ddprof program`"), ("record", "`ddprof record program`")):
        median = statistics.median(times[name])
        rows.append(Row("time until the target starts, " + what, measure.spread(times[name], "%.1f") + " ms", beside + " ms", "+%.1f ms" % (median - bare),
                        "≤ 15 ms", median <= 15))
    return rows


def end_ms(bench, command):
    output = subprocess.run(command, cwd=bench.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return (time.monotonic_ns() - int(output)) / 1e6


def end(bench):
    """
    From the last thing that a program does, which is to print the time, to the moment when the command has ended: with its profile
    written and its summary printed. It must not depend on the number of CPUs, of which each has its own events and rings.
    """
    program = bench.program("prints_time")
    commands = {"bare": [program], "record": bench.ddprof_record([program])}
    if bench.has_perf:
        commands["perf"] = bench.perf_record([program])
    times = {name: [] for name in commands}
    for _ in range(5 if bench.quick else 30):
        for name, command in commands.items():
            times[name].append(end_ms(bench, command))
    beside = ", ".join("%s %s" % (what, measure.spread(times[name], "%.1f")) for name, what in (("bare", "bare"), ("perf", "perf record")) if name in times)
    median = statistics.median(times["record"])
    return [Row("time after the target has ended, `ddprof record program`, %d CPUs" % os.cpu_count(), measure.spread(times["record"], "%.1f") + " ms",
                beside + " ms", "+%.1f ms" % (median - statistics.median(times["bare"])), "≤ 40 ms", median <= 40)]


def idle(bench):
    """CPU time of the profiler's processes, to the nanosecond, while the target sleeps; the first second is not in it."""
    seconds = 3 if bench.quick else 10
    child = bench.start(bench.ddprof_wrapper(["/bin/sleep", str(seconds + 2)], period=59))
    try:
        time.sleep(1)
        own = bench.profiler_pids()
        before = measure.cpu_ns(own)
        time.sleep(seconds)
        used = (measure.cpu_ns(own) - before) / 1e9
    finally:
        child.communicate()
        bench.wait_for_profiler_to_end()
    percent = used / seconds * 100
    return [Row("CPU while the target sleeps, over %d s" % seconds, "%.4f %% of a core" % percent, goal="0.00 %", met=percent < 0.005)]
