"""What sampled allocations cost the target: nanoseconds of a pair of malloc and free, bare and with the library."""

import collections
import os
import re
import statistics

from report import Row

THREADS = (1, 2) + ((8,) if (os.cpu_count() or 1) > 8 else ())
LOOPS = (("hot", "malloc(64) and free"), ("tight", "malloc of 16 to 4,096 bytes and free"), ("window", "the same, 64 blocks alive"), ("new", "the same by operator new"))
KINDS = {"bare": None, "allocations": "sALLOC", "live": "sALLOC m=a"}
GOALS = {"allocations": 3.0, "live": 4.0}
WALL_GOALS = {"allocations": 1.06, "live": 1.08}
WORDS = {"allocations": "allocations", "live": "live heap"}
Run = collections.namedtuple("Run", "pair_ns wall_s lost")


def one(bench, program, kind, loop, pairs, threads):
    command = [program, loop, str(pairs), str(threads)]
    if KINDS[kind]:
        command = [bench.binary, "record", "-e", KINDS[kind], "-O", bench.path("pairs.pb.gz"), "--", *command]
    finished = bench.run(command)
    lost = re.search(r"heap .* samples, ([\d,]+) lost", finished.stderr)
    return Run(float(finished.stdout.split()[0]), finished.wall_s, int(lost.group(1).replace(",", "")) if lost else 0)


def in_threads(count):
    return "%d %s" % (count, "thread" if count == 1 else "threads")


def lower_quartile(values):
    return statistics.quantiles(values, n=4, method="inclusive")[0]


def wall_rows(bench, program):
    """The loop that the peers were measured with (20 million pairs), from start to end, the profiler's own start and end included."""
    pairs = 5_000_000 if bench.quick else 20_000_000
    runs = collections.defaultdict(list)
    for _ in range(3 if bench.quick else 7):
        for threads in THREADS:
            for kind in KINDS:
                runs[kind, threads].append(one(bench, program, kind, "tight", pairs, threads))
    wall = {key: lower_quartile([run.wall_s for run in found]) for key, found in runs.items()}
    for threads in THREADS:
        for kind, goal in WALL_GOALS.items():
            ratio, lost = wall[kind, threads] / wall["bare", threads], sum(run.lost for run in runs[kind, threads])
            yield Row("%d million pairs, wall time, %s, %s" % (pairs // 1_000_000, in_threads(threads), WORDS[kind]),
                      "%.2f s%s" % (wall[kind, threads], ", %d lost" % lost if lost else ""), "bare %.2f s" % wall["bare", threads], "x%.3f" % ratio,
                      "≤ x%g" % goal, ratio <= goal and lost == 0)


def allocations(bench):
    """
    Pairs of malloc and free in one, two and (where there are so many cores) eight threads: bare, with allocations sampled (one in 512 KiB), and with the live heap as well.
    The three take turns; each run is done in parts of 10,000 pairs, of which the lower tenth counts, and of the runs the lower quartile: what disturbs
    them only ever makes them longer. In two threads on two cores the profiler takes its turns from the target's threads. The first row is the spread of bare runs.
    """
    pairs, program = 2_000_000 if bench.quick else 5_000_000, bench.program("pairs")
    times, lost = collections.defaultdict(list), collections.Counter()
    for _ in range(3 if bench.quick else 7):
        for loop, _ in LOOPS:
            for threads in THREADS:
                for kind in KINDS:
                    run = one(bench, program, kind, loop, pairs, threads)
                    times[kind, loop, threads].append(run.pair_ns)
                    lost[kind, loop, threads] += run.lost
    best = {key: lower_quartile(values) for key, values in times.items()}
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
                rows.append(Row("%s, %s, %s" % (what, in_threads(threads), WORDS[kind]),
                                "%+.1f ns%s" % (more, ", %d lost" % missing if missing else ""), "bare %.1f ns" % bare, "x%.3f" % (best[kind, loop, threads] / bare),
                                "≤ +%g ns" % limit, more <= limit and missing == 0))
    return rows + list(wall_rows(bench, program))
