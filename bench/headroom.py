"""How much of the machine must be idle so that profiling does not show in a server's latency."""

import statistics

import latency
import measure
from report import Findings, Row

LOADS = (20, 50, 80, 95)  # percent of capacity
LIMITS = (0.01, 0.001)
PERIOD_S = 2


def headroom(bench):
    """
    A server with one thread per core and requests of 0.5 ms of CPU each (`bench/programs/request_server.cpp`, stacks of 48 frames) is asked
    at moments that are fixed before a run, the same in every run, with exponential gaps (`request_load.cpp`); the latency counts from the
    moment at which a request was due, so that a slow answer hides nothing. Loads are shares of what the whole machine can serve, which is measured first.
    Each round is four runs: bare, `ddprof` at 99 Hz, `ddprof`, bare, or the other way round. Ratios are those of a round, the figure before
    the range is the median over rounds; "against itself" is one bare run of a round to the other, and what is smaller than that is noise.
    A profile is written every 2 seconds, thirty times as often as by default. On a machine with few cores this is the worst case: profiler and clients have no core of their own.
    """
    site = latency.Site(bench)
    loads = (50,) if bench.quick else LOADS
    by_load = {}
    for load in loads:
        rate = site.capacity * load / 100
        seconds = 0.7 if bench.quick else 5
        by_load[load] = latency.alternate(1 if bench.quick else 3, lambda: site.run([measure.bare], rate, seconds),
                                          lambda: site.run([site.wrapper(PERIOD_S)], rate, seconds))
    rows = [Row("capacity of %d threads" % site.threads, "", "bare %.0f requests/s" % site.capacity)]
    for load, rounds in by_load.items():
        rows += [latency_row("latency at %d %% load, %s" % (load, name), rounds, statistic) for name, statistic in latency.STATISTICS.items()]
    cost = Cost([pair for rounds in by_load.values() for pair in rounds])
    rows.append(Row("target's CPU per request, all loads", "x" + measure.spread(cost.target)))
    rows.append(Row("profiler's CPU, for each second of the target's", "%s ms" % measure.spread([own * 1000 for own in cost.own], "%.1f")))
    means = {load: (latency.ratios(rounds, statistics.fmean), latency.noise(rounds, statistics.fmean)) for load, rounds in by_load.items()}
    return Findings(rows, " ".join([*(within(means, limit) for limit in LIMITS), by_cost(cost.share())]))


def latency_row(what, rounds, statistic):
    found = latency.ratios(rounds, statistic)
    bare = statistics.median(statistic(run.latencies()) for pair, _ in rounds for run in pair)
    return Row(what, "x" + measure.spread(found), "bare %.2f ms, against itself x%s" % (bare * 1000, measure.spread(latency.noise(rounds, statistic))),
               latency.percent(statistics.median(found)))


class Cost:
    """What profiling adds to the work: in the target (its stacks are copied while it waits) and beside it."""

    def __init__(self, rounds):
        def per_request(runs):
            return sum(run.target_cpu_s for run in runs) / sum(len(run.answers) for run in runs)
        self.target = [per_request(profiled) / per_request(bare) for bare, profiled in rounds]
        self.own = [sum(run.own_cpu_s for run in profiled) / sum(run.target_cpu_s for run in profiled) for _, profiled in rounds]

    def share(self):
        return max(0.0, statistics.median(self.target) - 1) + statistics.median(self.own)


def within(means, limit):
    """The greatest load up to which the mean latency stayed within the limit, in words."""
    held = None
    for load in sorted(means):
        if statistics.median(means[load][0]) - 1 > limit:
            break
        held = load
    text = "Mean latency stayed within %g %% of bare %s" % (
        limit * 100, "at none of these loads" if held is None else "up to a load of %d %%, with %d %% of the machine idle" % (held, 100 - held))
    loads = sorted(means)
    blurred = [load for load in loads if abs(statistics.median(means[load][1]) - 1) > limit]
    if blurred:
        text += " (at %s bare runs themselves differed by more than that)" % " and ".join("%d %%" % load for load in blurred)
    return text + "."


def by_cost(share):
    """A queue that is h idle gets slower by about 1/h times what is added to its work: the answer where latency itself is too noisy."""
    text = "Rule of thumb: profiling added %.2f %% to the work, which slows a queue down by about that over its idle share:" % (share * 100)
    for limit in LIMITS:
        need = share / limit
        text += " %g %% needs %s," % (limit * 100, "about %.0f %% of the machine idle" % (need * 100) if need <= 1 else
                                      "a lower rate than %d Hz, about %.0f Hz on a machine that is half idle" % (latency.FREQUENCY, latency.FREQUENCY * limit / 2 / share))
    return text.rstrip(",") + "."
