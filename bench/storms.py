"""Tasks that live for a short time: what following them costs, and whether the profile still adds up."""

import collections
import json
import os
import statistics

import measure
import pprof  # of tests/system, which measure has put on the path
from report import Row

STORMS = (("2,000 processes of 1 ms", "fork_storm", ["2000", "1"]), ("40,000 threads", "thread_storm", ["40000"]))
QUICK = (("500 processes of 1 ms", "fork_storm", ["500", "1"]), ("5,000 threads", "thread_storm", ["5000"]))


def profilers(bench):
    found = {"ddprof": bench.ddprof_record}
    if os.geteuid() == 0:
        found = {"ddprof, privileged": bench.ddprof_record,
                 "ddprof, unprivileged": lambda command: measure.unprivileged(bench.ddprof_record(command))}
    if bench.has_perf:
        found["perf"] = bench.perf_record
    return found


def forget(bench):
    """Files of another user are in the way of the next."""
    for name in ("profile.pb.gz", "timed.json", "perf.data"):
        if os.path.exists(bench.path(name)):
            os.unlink(bench.path(name))


def storms(bench):
    """
    Tasks that end within one sampling period are never sampled by inherited events, perf's and ddprof's alike; with privilege ddprof
    changes to events per CPU when it sees many. "Adds up" is the CPU total of the profile against what getrusage said in the target:
    time that no sample caught is in the profile under a name of its own.
    """
    rows = []
    for what, puppet, arguments in QUICK if bench.quick else STORMS:
        rows += storm(bench, what, [bench.puppet(puppet), *arguments])
    return rows


def storm(bench, what, target):
    modes = profilers(bench)
    walls, sums, samples = collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(1 if bench.quick else 3):
        forget(bench)
        plain = bench.run_timed(measure.bare, target).wall_s
        for name, profiler in modes.items():
            forget(bench)
            timed = bench.run_timed(profiler, target)
            walls[name].append(timed.wall_s / plain)
            if name == "perf":
                samples[name].append(measure.perf_samples(timed.finished.stderr))
                continue
            samples[name].append(measure.ddprof_counts(timed.finished.stderr)[0])
            truth = json.loads(timed.finished.stdout.splitlines()[-1])["total_ns"]
            sums[name].append(pprof.total(pprof.read(bench.path("profile.pb.gz")), "cpu/nanoseconds") / truth)
    forget(bench)
    beside = "perf x%s, %d samples" % (measure.spread(walls["perf"], "%.2f"), statistics.median(samples["perf"])) if bench.has_perf else ""
    rows = []
    for name in sums:
        rows.append(Row("%s: %s, wall" % (what, name), "x%s, %d samples" % (measure.spread(walls[name], "%.2f"), statistics.median(samples[name])), beside))
        rows.append(Row("%s: %s, adds up" % (what, name), "x" + measure.spread(sums[name]), goal="within 1 %", met=abs(statistics.median(sums[name]) - 1) <= 0.01))
    return rows
