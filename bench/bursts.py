"""Whether the latency that profiling adds is spread over time, or comes when a profile is closed, named and written."""

import os
import shutil
import statistics
import time

import latency
import measure
from report import Findings, Row

LOAD = 50  # percent of capacity
PERIOD_S = 5
AROUND_S = 1


class Part:
    """A part of a run's time, by the moments of its exports, and whether a moment is in it."""

    def __init__(self, name, contains):
        self.name, self.contains = name, contains


def is_near(moments, at):
    return any(abs(at - moment) <= AROUND_S for moment in moments)


PARTS = (Part("around the first export", lambda moments, at: is_near(moments[:1], at)),
         Part("around later exports", lambda moments, at: is_near(moments[1:], at) and not is_near(moments[:1], at)),
         Part("between exports", lambda moments, at: not is_near(moments, at)))
SHOWN = {**latency.STATISTICS, "max": max}


def bursts(bench):
    """
    The server of "Headroom" at half of the machine's capacity, bare and under `ddprof -u 5` in turns. The moments of export are those at which the
    profiles' files were written; just before, the profile was closed, its addresses were named, and it was encoded. The first export reads
    the symbols and debug information of everything that was seen. Requests that were due within a second of an export are compared with those of the bare run that were due in the same
    stretches of the same schedule, and so are all others.
    """
    site = latency.Site(bench)
    period, seconds = (1, 2.6) if bench.quick else (PERIOD_S, 4 * PERIOD_S + 2)
    rate = site.capacity * LOAD / 100
    pairs = [one_pair(site, rate, seconds, period, is_bare_first=number % 2 == 0) for number in range(1 if bench.quick else 3)]
    rows, by_part = [], {}
    for part in PARTS:
        by_part[part.name] = compare(pairs, part)
        for name, found in by_part[part.name].items():
            bare = statistics.median(bare for bare, _ in found)
            rows.append(Row("latency %s, %s" % (part.name, name), "x" + measure.spread([ours / bare for bare, ours in found]), "bare %.2f ms" % (bare * 1000),
                            latency.percent(statistics.median(ours / bare for bare, ours in found))))
    rows.append(Row("mean latency by time since an export", over_time(pairs, period)))
    return Findings(rows, conclusion(by_part))


def one_pair(site, rate, seconds, period, is_bare_first):
    """(bare run, profiled run, moments of its exports in seconds since its start)"""
    bare = site.run([measure.bare], rate, seconds) if is_bare_first else None
    profiles = site.bench.path("profiles")
    shutil.rmtree(profiles, ignore_errors=True)
    profiled = site.run([site.wrapper(period)], rate, seconds)
    moments = export_moments(profiles, profiled)
    if not moments:
        raise RuntimeError("no profile was written within a run")
    return bare or site.run([measure.bare], rate, seconds), profiled, moments


def export_moments(profiles, run):
    to_monotonic = time.monotonic_ns() - time.time_ns()
    moments = [(os.stat(os.path.join(profiles, name)).st_mtime_ns + to_monotonic - run.start_ns) / 1e9 for name in os.listdir(profiles) if name.endswith(".pb.gz")]
    return sorted(moment for moment in moments if moment <= run.seconds)  # the last one is written when the server has ended


def compare(pairs, part):
    """By statistic: (bare, profiled) of each pair, over the requests of this part."""
    found = {name: [] for name in SHOWN}
    for bare, profiled, moments in pairs:
        ordered = [run.latencies(lambda answer: part.contains(moments, answer.due_s)) for run in (bare, profiled)]
        if not all(ordered):
            continue
        for name, statistic in SHOWN.items():
            found[name].append((statistic(ordered[0]), statistic(ordered[1])))
    return {name: values for name, values in found.items() if values}


def over_time(pairs, period):
    """What was added to the mean, by the seconds that had passed since the last export."""
    texts = []
    for second in range(period):
        def is_then(moments, at, second=second):
            past = [at - moment for moment in moments if moment <= at]
            return bool(past) and second <= min(past) < second + 1
        found = compare(pairs, Part("", is_then)).get("mean", [])
        if found:
            texts.append("%d s: %s" % (second, latency.percent(statistics.median(ours / bare for bare, ours in found))))
    return ", ".join(texts)


def conclusion(by_part):
    calm, sentences, bursting = by_part["between exports"], [], []
    for part in PARTS[:-1]:
        near = by_part[part.name]
        shown = [name for name in ("mean", "p99.9") if name in near and name in calm]
        if not shown:
            continue
        sentences.append("%s %s." % (part.name.capitalize(), ", and ".join(
            "the %s was %s of bare, between exports %s" % (name, middle(near[name]), middle(calm[name])) for name in shown)))
        if any(is_above(near[name], calm[name]) for name in shown):
            bursting.append(part.name)
    verdict = "The added latency comes in bursts: %s it is above that of all other times in every run." % " and ".join(bursting) if bursting else \
        "The added latency is spread evenly, as far as these runs can tell: near exports and between them the ranges overlap."
    return " ".join([*sentences, verdict])


def middle(found):
    return "x%.3f" % statistics.median(ours / bare for bare, ours in found)


def is_above(near, far):
    return min(ours / bare for bare, ours in near) > max(ours / bare for bare, ours in far)
