"""How much longer the target takes, at three frequencies, in one alternating loop."""

import collections
import statistics

import measure
from report import Row

FREQUENCIES = (99, 999, 4999)
THREADS = 2
EQUAL = 0.005


def descents_for(bench, program, seconds):
    """The amount of work that takes about so long on this machine."""
    trial = 2000
    wall = min(bench.run_timed(measure.bare, [program, str(trial), str(THREADS)]).wall_s for _ in range(5))
    return str(int(trial * seconds / wall))


def profiler_of(bench, key):
    if key == "bare":
        return measure.bare
    name, frequency = key
    record = bench.ddprof_record if name == "ddprof" else bench.perf_record
    return lambda command: record(command, frequency=frequency)


def counts_of(key, stderr):
    """(samples, lost)."""
    if key[0] == "ddprof":
        return measure.ddprof_counts(stderr)
    return measure.perf_samples(stderr), measure.perf_lost(stderr)


def one_round(bench, target, order, runs, samples, lost):
    for key in order:
        timed = bench.run_timed(profiler_of(bench, key), target)
        runs[key].append(timed)
        if key != "bare":
            found, missing = counts_of(key, timed.finished.stderr)
            samples[key] += found
            lost[key] += missing


def ratios(runs, key, value):
    """Each run against the bare run of its round."""
    return [value(run) / value(plain) for run, plain in zip(runs[key], runs["bare"])]


def slow_down(bench):
    """
    The same amount of work at the end of 48-frame stacks, in two threads, is done in rounds: bare, and under ddprof and perf at each
    frequency, every round beginning with another of them. Ratios are to the bare run of the same round, so that what disturbs the
    machine for longer disturbs both. Medians less than half a point apart count as equal. On a machine
    with two cores the profiler competes with the two threads, which shows in the wall time; the target's own CPU shows what the
    kernel's copying of stacks costs. The first row is the spread of bare runs about their median: differences below that are noise.
    """
    program = bench.program("fixed_work")
    target = [program, descents_for(bench, program, 1 if bench.quick else 2.5), str(THREADS)]
    runs, samples, lost = collections.defaultdict(list), collections.Counter(), collections.Counter()
    peers = ["ddprof", "perf"] if bench.has_perf else ["ddprof"]
    order = ["bare"] + [(name, frequency) for frequency in FREQUENCIES for name in peers]
    for _ in range(2 if bench.quick else 9):
        one_round(bench, target, order, runs, samples, lost)
        order = order[1:] + order[:1]

    middle = statistics.median(run.wall_s for run in runs["bare"])
    rows = [Row("bare runs of %.1f s, wall about their median" % middle, "", "bare x" + measure.spread([run.wall_s / middle for run in runs["bare"]]))]
    for frequency in FREQUENCIES:
        for value, what in ((lambda run: run.wall_s, "wall"), (lambda run: run.target_cpu_s, "CPU")):
            rows.append(row_of(runs, frequency, value, what))
    for frequency in FREQUENCIES[-1:]:
        beside = "perf %d of %d" % (lost["perf", frequency], lost["perf", frequency] + samples["perf", frequency]) if bench.has_perf else ""
        missing = lost["ddprof", frequency]
        rows.append(Row("samples lost at %d Hz" % frequency, "%d of %d" % (missing, missing + samples["ddprof", frequency]), beside, goal="0", met=missing == 0))
    return rows


def row_of(runs, frequency, value, what):
    ours = ratios(runs, ("ddprof", frequency), value)
    median = statistics.median(ours)
    peers = ratios(runs, ("perf", frequency), value) if runs["perf", frequency] else []
    peer = statistics.median(peers) if peers else None
    if frequency == FREQUENCIES[0]:
        goal, met = "< x1.01", median < 1.01
    else:
        goal, met = "≤ perf's", None if peer is None else median <= peer + EQUAL
    return Row("target's %s at %d Hz" % (what, frequency), "x" + measure.spread(ours), "perf x" + measure.spread(peers) if peers else "",
               "%+.1f points" % ((median - peer) * 100) if peers else "", goal, met)
