"""What sampled allocations cost the target: nanoseconds of a pair of malloc and free, bare and with the library."""

import collections
import re
import statistics

from report import Row

THREADS = (1, 2)
LOOPS = (("hot", "malloc(64) and free"), ("tight", "malloc of 16 to 4,096 bytes and free"), ("window", "the same, 64 blocks alive"), ("new", "the same by operator new"))
KINDS = {"bare": None, "allocations": "sALLOC", "live": "sALLOC m=a"}
GOALS = {"allocations": 3.0, "live": 4.0}


def one(bench, kind, loop, pairs, threads):
    command = [bench.program("pairs"), loop, str(pairs), str(threads)]
    if KINDS[kind]:
        command = [bench.binary, "record", "-e", KINDS[kind], "-O", bench.path("pairs.pb.gz"), "--", *command]
    finished = bench.run(command)
    lost = re.search(r"heap .* samples, ([\d,]+) lost", finished.stderr)
    return float(finished.stdout.split()[0]), int(lost.group(1).replace(",", "")) if lost else 0


def allocations(bench):
    """
    Pairs of malloc and free in one and two threads: bare, with allocations sampled (one in 512 KiB), and with the live heap as well.
    The three take turns; each run is done in parts of 10,000 pairs, of which the lower tenth counts, and of the runs the lower quartile: what disturbs
    them only ever makes them longer. In two threads on two cores the profiler takes its turns from the target's threads. The first row is the spread of bare runs.
    """
    pairs = 2_000_000 if bench.quick else 5_000_000
    times, lost = collections.defaultdict(list), collections.Counter()
    for _ in range(3 if bench.quick else 7):
        for loop, _ in LOOPS:
            for threads in THREADS:
                for kind in KINDS:
                    time, missing = one(bench, kind, loop, pairs, threads)
                    times[kind, loop, threads].append(time)
                    lost[kind, loop, threads] += missing
    best = {key: statistics.quantiles(values, n=4, method="inclusive")[0] for key, values in times.items()}
    spread = max((sorted(values)[len(values) // 2] / best[key] - 1) for key, values in times.items() if key[0] == "bare")
    rows = [Row("spread of bare runs", "%.1f %%" % (100 * spread))]
    for loop, what in LOOPS:
        for threads in THREADS:
            bare = best["bare", loop, threads]
            for kind, goal in GOALS.items():
                more = best[kind, loop, threads] - bare
                missing = lost[kind, loop, threads]
                # operator new of ours calls malloc directly: one call less.
                limit = 0.0 if loop == "new" and kind == "allocations" else goal
                rows.append(Row("%s, %d %s, %s" % (what, threads, "thread" if threads == 1 else "threads", "live heap" if kind == "live" else kind),
                                "%+.1f ns%s" % (more, ", %d lost" % missing if missing else ""), "bare %.1f ns" % bare, "x%.3f" % (best[kind, loop, threads] / bare),
                                "≤ +%g ns" % limit, more <= limit and missing == 0))
    return rows
