"""How much of the machine must be idle so that profiling does not show in a server's latency."""

import statistics

import latency
import measure
from report import Findings, Row

LOADS = (20, 50, 80, 95)  # percent of capacity
LIMITS = (0.01, 0.001)
PERIOD_S, DEFAULT_PERIOD_S = 5, 59


def headroom(bench):
    """
    A server with one thread per core and requests of about 0.5 ms of CPU each (`bench/programs/request_server.cpp`, stacks of 48 frames) is asked
    at moments that are fixed before a run, the same in every run, with exponential gaps (`request_load.cpp`); the latency counts from the
    moment at which a request was due, so that a slow answer hides nothing. Loads are shares of what the whole machine can serve, which is measured first.
    Each round is four runs: bare, `ddprof` at 99 Hz, `ddprof`, bare, or the other way round. Ratios are those of a round, the figure before
    the range is the median over rounds; "against itself" is one bare run of a round to the other, and what is smaller than that is noise.
    A profile is written every 5 seconds, twelve times as often as by default. On a machine with few cores this is the worst case: profiler and clients have no core of their own.
    """
    site = latency.Site(bench)
    by_load = {load: rounds_at(site, load) for load in ((50,) if bench.quick else LOADS)}
    rows = [Row("capacity of %d threads" % site.threads, "", "bare %.0f requests/s" % site.capacity)]
    for load, rounds in by_load.items():
        rows += [latency_row("latency at %d %% load, %s" % (load, name), rounds, statistic) for name, statistic in latency.STATISTICS.items()]
    cost = Cost(site, by_load)
    means = {load: (latency.ratios(rounds, statistics.fmean), latency.noise(rounds, statistics.fmean)) for load, rounds in by_load.items()}
    return Findings(rows + cost.rows(), " ".join([*(within(means, limit) for limit in LIMITS), rule_of_thumb(cost.share())]))


def rounds_at(site, load):
    rate, seconds = site.capacity * load / 100, 0.7 if site.bench.quick else 6
    return latency.alternate(1 if site.bench.quick else 2, lambda: site.run([measure.bare], rate, seconds),
                             lambda: site.run([site.wrapper(PERIOD_S)], rate, seconds))


def latency_row(what, rounds, statistic):
    found = latency.ratios(rounds, statistic)
    bare = statistics.median(statistic(run.latencies()) for pair, _ in rounds for run in pair)
    return Row(what, "x" + measure.spread(found), "bare %.2f ms, against itself x%s" % (bare * 1000, measure.spread(latency.noise(rounds, statistic))),
               latency.percent(statistics.median(found)))


class Cost:
    """What profiling adds to the work: in the target, which waits while its stacks are copied, and beside it."""

    def __init__(self, site, by_load):
        self.target = [low_quartile([run for _, profiled in rounds for run in profiled]) / low_quartile([run for bare, _ in rounds for run in bare])
                       for rounds in by_load.values()]
        seconds = 2.2 if site.bench.quick else 11
        rare, often = (site.run([site.wrapper(period)], site.capacity * 0.8, seconds) for period in (DEFAULT_PERIOD_S, PERIOD_S))
        self.sampling = rare.own_cpu_s / rare.target_cpu_s
        self.export_s = max(0.0, often.own_cpu_s - rare.own_cpu_s * often.target_cpu_s / rare.target_cpu_s) / max(1, seconds // PERIOD_S)
        self.cores = rare.target_cpu_s / seconds

    def rows(self):
        return [Row("target's CPU per request, by load", "x" + measure.spread(self.target)),
                Row("profiler's CPU for each second of the target's", "%.2f ms" % (self.sampling * 1000)),
                Row("profiler's CPU for each export", "%.1f ms" % (self.export_s * 1000))]

    def share(self):
        """Of the target's CPU, with the default period."""
        return max(0.0, statistics.median(self.target) - 1) + self.sampling + self.export_s / DEFAULT_PERIOD_S / self.cores


def low_quartile(runs):
    """CPU time of a request: what disturbs a run only ever makes it longer."""
    return statistics.quantiles([run.cpu_per_request() for run in runs], n=4, method="inclusive")[0]


def within(means, limit):
    """Up to which load the mean latency stayed within the limit, in words."""
    held = None
    for load in sorted(means):
        if statistics.median(means[load][0]) - 1 > limit:
            break
        held = load
    text = "Mean latency stayed within %g %% of bare %s" % (
        limit * 100, "at none of these loads" if held is None else "up to a load of %d %%, that is with %d %% of the machine idle" % (held, 100 - held))
    blurred = [load for load in sorted(means) if max(abs(ratio - 1) for ratio in means[load][1]) > limit]
    if blurred:
        text += " (at %s bare runs differ among themselves by more than that)" % " and ".join("%d %%" % load for load in blurred)
    return text + "."


def rule_of_thumb(share):
    """A queue that is h idle gets slower by about 1/h times what is added to its work: an answer that does not drown in noise."""
    text = "Rule of thumb: profiling at %d Hz adds %.2f %% to the work, and latency grows by about that, divided by the idle share of the machine:" % (latency.FREQUENCY, share * 100)
    return text + ",".join(" to stay within %g %% %s" % (limit * 100, needed(share, limit)) for limit in LIMITS) + "."


def needed(share, limit):
    if share <= limit:
        return "leave %.0f %% idle" % max(1, share / limit * 100)
    return "at half load, take %.0f Hz" % (latency.FREQUENCY * limit / 2 / share)
