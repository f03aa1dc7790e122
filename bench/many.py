"""Whether the cost per process depends on how many of a machine's processes are profiled."""

import collections
import contextlib
import os
import statistics

import latency
import measure
from report import Findings, Row

SERVERS = 8
LOAD = 60  # percent of capacity, all servers together
PERIOD_S, RUN_S = 8, 11


def many(bench):
    """
    Eight servers of one thread each, together at 60 % of what the machine can serve, with the schedule of "Headroom". In each round none,
    one, four and all of them run under a `ddprof` of their own, then all under one `ddprof -g` (as root; it sees the machine's other processes too), then none again. Each writes a profile every
    8 seconds, one in a run, seven times as often as by default; what an export costs is in "Headroom". Every server has a session of its own, as services have. The latencies of the
    profiled servers are compared with those of the same servers in the bare runs of the round, and so are those of the others, which only share the machine.
    """
    site = latency.Site(bench)
    servers = 4 if bench.quick else SERVERS
    cases = [1, servers] if bench.quick else [1, servers // 2, servers]
    found = collections.defaultdict(list)
    for _ in range(1 if bench.quick else 3):
        one_round(site, servers, cases + (["-g"] if os.geteuid() == 0 else []), found)
    rows = [Row("none of %d profiled, mean latency" % servers, "", "bare against itself x%s" % measure.spread(
        [statistics.fmean(second.latencies()) / statistics.fmean(first.latencies()) for first, second in found["bare"]]))]
    for case in cases + ["-g"]:
        if found[case]:
            rows += case_rows(case, servers, found[case])
    return Findings(rows, conclusion(found, cases, servers))


def one_round(site, servers, cases, found):
    bare = [one_run(site, servers, 0)]
    runs = {case: one_run(site, servers, case) for case in cases}
    bare.append(one_run(site, servers, 0))
    found["bare"].append(bare)
    for case, run in runs.items():
        found[case].append(Compared(run, bare, profiled_of(case, servers), servers))


def profiled_of(case, servers):
    return servers if case == "-g" else case


def one_run(site, servers, case):
    wrapped = 0 if case == "-g" else case
    profilers = [site.wrapper(PERIOD_S)] * wrapped + [measure.bare] * (servers - wrapped)
    with site.whole_host(PERIOD_S) if case == "-g" else contextlib.nullcontext():
        run = site.run(profilers, site.capacity * LOAD / 100 / servers, 0.7 if site.bench.quick else RUN_S, threads=1)
    site.bench.wait_for_profiler_to_end()
    return run


class Compared:
    """One run against the bare ones of its round."""

    def __init__(self, run, bare, profiled, servers):
        def mean_ratio(where):
            return statistics.fmean(run.latencies(where)) / statistics.fmean(latency.pooled(bare, where))
        self.profiled = mean_ratio(lambda answer: answer.server < profiled)
        self.others = mean_ratio(lambda answer: answer.server >= profiled) if profiled < servers else None
        self.target = run.cpu_per_request() / statistics.fmean(one.cpu_per_request() for one in bare)
        self.own_percent = run.own_cpu_s / run.seconds / profiled * 100


def case_rows(case, servers, compared):
    name = "all %d under one -g" % servers if case == "-g" else "%d of %d under a ddprof each" % (case, servers)
    rows = [Row(name + ", mean latency of those", "x" + measure.spread([each.profiled for each in compared]))]
    if compared[0].others is not None:
        rows.append(Row(name + ", of the others", "x" + measure.spread([each.others for each in compared])))
    rows.append(Row(name + ", CPU per request, all servers", "x" + measure.spread([each.target for each in compared])))
    rows.append(Row(name + ", profilers' CPU per profiled process", "%s %% of a core" % measure.spread([each.own_percent for each in compared], "%.2f")))
    return rows


def conclusion(found, cases, servers):
    def own(case):
        return statistics.median(each.own_percent for each in found[case])
    text = "The profilers' CPU per process with all %d processes wrapped was x%.2f of that with one wrapped" % (servers, own(cases[-1]) / own(cases[0]))
    if found["-g"]:
        text += "; one `-g` for all of them took x%.2f of it" % (own("-g") / own(cases[0]))
    slow = {case: statistics.median(each.profiled for each in found[case]) for case in cases}
    return text + ". Mean latency of the profiled ones: %s." % ", ".join("%s with %d wrapped" % (latency.percent(ratio), case) for case, ratio in slow.items())
