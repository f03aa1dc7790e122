"""How much longer the target takes, at three frequencies, in one alternating loop."""

import collections
import statistics

import measure
from report import Row

FREQUENCIES = (99, 999, 4999)
THREADS = 2
EQUAL = 0.01


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


def one_round(bench, target, number, order, runs, samples, lost):
    for key in order:
        timed = bench.run_timed(profiler_of(bench, key), target)
        runs[key][number] = timed
        if key != "bare":
            found, missing = counts_of(key, timed.finished.stderr)
            samples[key] += found
            lost[key] += missing


def low_quartile(runs, value):
    """What disturbs a run only ever makes it longer."""
    return statistics.quantiles([value(run) for run in runs.values()], n=4, method="inclusive")[0]


class Ratio:
    """A profiler's runs against the bare ones: their lower quartiles, and the middle half of the ratios within a round."""

    def __init__(self, runs, key, value):
        self.value = low_quartile(runs[key], value) / low_quartile(runs["bare"], value)
        rounds = [value(run) / value(runs["bare"][number]) for number, run in runs[key].items()]
        self.low, _, self.high = statistics.quantiles(rounds, n=4, method="inclusive")

    def __str__(self):
        return "x%.3f [%.3f–%.3f]" % (self.value, self.low, self.high)


def slow_down(bench):
    """
    The same amount of work at the end of 48-frame stacks, in two threads, is done in rounds: bare, and under ddprof and perf at each
    frequency (the higher ones in every other round), every round beginning with another of them. What disturbs a run only ever makes
    it longer, so lower quartiles are compared; in brackets is the middle half of the ratios within a round. Less than a point apart
    counts as equal. On a machine with two cores the profiler competes with the two threads, which shows in the wall time; the target's own CPU shows what the
    kernel's copying of stacks costs. The first row is the spread of bare runs: differences far below that are noise.
    """
    program = bench.program("fixed_work")
    target = [program, descents_for(bench, program, 1 if bench.quick else 2.5), str(THREADS)]
    runs, samples, lost = collections.defaultdict(dict), collections.Counter(), collections.Counter()
    peers = ["ddprof", "perf"] if bench.has_perf else ["ddprof"]
    order = ["bare"] + [(name, frequency) for frequency in FREQUENCIES for name in peers]
    for number in range(3 if bench.quick else 12):
        rare = number % 2 == 1  # what is small takes more runs to see
        one_round(bench, target, number, [key for key in order if not rare or key == "bare" or key[1] == FREQUENCIES[0]], runs, samples, lost)
        order = order[1:] + order[:1]

    low = low_quartile(runs["bare"], lambda run: run.wall_s)
    rows = [Row("%d bare runs of %.1f s, wall" % (len(runs["bare"]), low), "", "bare x" + measure.spread([run.wall_s / low for run in runs["bare"].values()]))]
    for frequency in FREQUENCIES:
        for value, what in ((lambda run: run.wall_s, "wall"), (lambda run: run.target_cpu_s, "CPU")):
            rows.append(row_of(runs, frequency, value, what))
    for frequency in FREQUENCIES[-1:]:
        beside = "perf %d of %d" % (lost["perf", frequency], lost["perf", frequency] + samples["perf", frequency]) if bench.has_perf else ""
        missing = lost["ddprof", frequency]
        rows.append(Row("samples lost at %d Hz" % frequency, "%d of %d" % (missing, missing + samples["ddprof", frequency]), beside, goal="0", met=missing == 0))
    return rows


def row_of(runs, frequency, value, what):
    ours = Ratio(runs, ("ddprof", frequency), value)
    peer = Ratio(runs, ("perf", frequency), value) if runs["perf", frequency] else None
    if frequency == FREQUENCIES[0]:
        goal, met = "< x1.01", ours.value < 1.01
    else:
        goal, met = "≤ perf's", None if peer is None else ours.value <= peer.value + EQUAL
    return Row("target's %s at %d Hz" % (what, frequency), str(ours), "perf %s" % peer if peer else "",
               "%+.1f points" % ((ours.value - peer.value) * 100) if peer else "", goal, met)
