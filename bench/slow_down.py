"""How much longer the target takes, at three frequencies, in one alternating loop."""

import collections
import statistics

import measure
from report import Row

FREQUENCIES = (99, 999, 4999)
THREADS = 2


def descents_for(bench, program, seconds):
    """The amount of work that takes about so long on this machine."""
    trial = 2000
    wall = min(bench.run_timed(measure.bare, [program, str(trial), str(THREADS)]).wall_s for _ in range(3))
    return str(int(trial * seconds / wall))


def one_round(bench, target, runs, lost, samples):
    runs["bare"].append(bench.run_timed(measure.bare, target))
    for frequency in FREQUENCIES:
        timed = bench.run_timed(lambda command: bench.ddprof_record(command, frequency=frequency), target)
        runs["ddprof", frequency].append(timed)
        found, missing = measure.ddprof_counts(timed.finished.stderr)
        samples["ddprof", frequency] += found
        lost["ddprof", frequency] += missing
        if bench.has_perf:
            timed = bench.run_timed(lambda command: bench.perf_record(command, frequency=frequency), target)
            runs["perf", frequency].append(timed)
            samples["perf", frequency] += measure.perf_samples(timed.finished.stderr)
            lost["perf", frequency] += measure.perf_lost(timed.finished.stderr)


def ratios(runs, key, value):
    """Each run against the bare run of its round."""
    return [value(run) / value(plain) for run, plain in zip(runs[key], runs["bare"])]


def slow_down(bench):
    """
    The same amount of work at the end of 48-frame stacks, in two threads on every round: bare, then under ddprof and perf at each
    frequency. Ratios are to the bare run of the same round, so that what disturbs the machine for longer disturbs both. On a machine
    with two cores the profiler competes with the two threads, which shows in the wall time; the target's own CPU shows what the
    kernel's copying of stacks costs. The first row is the spread of bare runs about their median: differences below that are noise.
    """
    program = bench.program("fixed_work")
    target = [program, descents_for(bench, program, 1 if bench.quick else 3), str(THREADS)]
    runs, lost, samples = collections.defaultdict(list), collections.Counter(), collections.Counter()
    for _ in range(2 if bench.quick else 7):
        one_round(bench, target, runs, lost, samples)

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
        goal, met = "≤ perf's", None if peer is None else median <= peer
    return Row("target's %s at %d Hz" % (what, frequency), "x" + measure.spread(ours), "perf x" + measure.spread(peers) if peers else "",
               "%+.1f points" % ((median - peer) * 100) if peers else "", goal, met)
