"""What sending profiles to an agent costs: the worker, the program that is profiled, and the network."""

import collections
import os
import statistics

import agent  # of tests/system, which measure has put on the path
import measure
from micro import google_benchmark
from report import Row
from slow_down import descents_for, low_quartile

THREADS = 16
PERIOD_S = 10
MOST_MS, MOST_BYTES = 50, 400_000
FULL_SAMPLES = THREADS * 99 * 60


class Cleanups:
    """Takes the place of a test for the agent, which wants to be closed by somebody."""

    def __init__(self):
        self.functions = []

    def addCleanup(self, function):
        self.functions.append(function)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for function in self.functions:
            function()


def finishing_cpu_ns(pid):
    """CPU time of all threads but the first, which samples: they name, encode, compress and send."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        if int(tid) != pid:
            with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as file:
                total += int(file.read().split()[0])
    return total


def worker_pid(bench):
    """The profiler's process that has more than one thread, once it has sent a profile."""
    return measure.wait_for(lambda: next((pid for pid in measure.processes_of(bench.binary) if len(os.listdir("/proc/%d/task" % pid)) > 1), None), 30,
                            "the worker")


def upload(bench):
    """
    `nested48` with 16 threads that are always busy, sampled at 99 Hz with a timeline, and an agent on the same machine. The worker's
    cost is the CPU time of its finishing thread from one upload to the next: naming, encoding, compressing and sending together. This machine
    has fewer than 16 cores and so fewer samples; "16 cores" is the same minute with all of its samples, made by
    `src/encode/encode_bench.cpp`, encoded and compressed. Then the same amount of work is done in rounds with and without an agent, a
    period being one second; lower quartiles are compared.
    """
    rows = real_uploads(bench)
    full = google_benchmark(bench, "encode/encode_bench", "^busy_minute$")["busy_minute"]
    rows.append(Row("a minute of 16 threads on 16 cores, encoded and compressed", "%.0f ms for %d samples" % (full["cpu_time"], FULL_SAMPLES),
                    goal="< %d ms" % MOST_MS, met=full["cpu_time"] < MOST_MS))
    rows.append(Row("its size", "%.0f KB" % (full["bytes"] / 1000), goal="< %d KB" % (MOST_BYTES / 1000), met=full["bytes"] < MOST_BYTES))
    return rows + [slow_down(bench)]


def real_uploads(bench):
    """Of a run that goes on for a few periods; the first is not in it, which reads the names."""
    periods = 1 if bench.quick else 3
    with Cleanups() as cleanups:
        receiver = agent.Agent(cleanups)
        seconds = (periods + 2) * PERIOD_S * os.cpu_count() / THREADS
        target = [bench.puppet("nested48"), "%g" % seconds, str(THREADS)]
        child = bench.start([bench.binary, "--timeline", "-u", str(PERIOD_S), "-U", receiver.url, *target])
        try:
            costs = [cost_of_next(bench, receiver, number + 1) for number in range(periods + 1)]
        finally:
            child.communicate()
            bench.wait_for_profiler_to_end()
        sizes = [len(post.pprof) for post in receiver.posts[1:periods + 1]]
        samples = [len(post.profile.samples) for post in receiver.posts[1:periods + 1]]
    per_period = [(after - before) / 1e6 for before, after in zip(costs, costs[1:])]
    minute = statistics.median(sizes) * 60 / PERIOD_S
    return [Row("worker's CPU for a profile of %d s with %d samples" % (PERIOD_S, statistics.median(samples)), measure.spread(per_period, "%.1f") + " ms",
                goal="< %d ms" % MOST_MS, met=max(per_period) < MOST_MS),
            Row("bytes sent for it, times %d" % (60 // PERIOD_S), "%.0f KB" % (minute / 1000), goal="< %d KB" % (MOST_BYTES / 1000), met=minute < MOST_BYTES)]


def cost_of_next(bench, receiver, count):
    """The finishing threads' CPU time when so many profiles have arrived."""
    measure.wait_for(lambda: len(receiver.posts) >= count, 3 * PERIOD_S, "%d profiles" % count)
    return finishing_cpu_ns(worker_pid(bench))


def slow_down(bench):
    program = bench.program("fixed_work")
    target = [program, descents_for(bench, program, 1 if bench.quick else 3), str(os.cpu_count())]
    runs = collections.defaultdict(dict)
    with Cleanups() as cleanups:
        receiver = agent.Agent(cleanups)
        modes = {"with": ["-U", receiver.url], "without": ["--do-export=false", "-O", bench.path("none.pb.gz")]}
        for number in range(2 if bench.quick else 5):
            for mode in sorted(modes, reverse=number % 2 == 1):
                runs[mode][number] = bench.run_timed(lambda command, mode=mode: [bench.binary, "--timeline", "-u", "1", *modes[mode], *command], target)
                bench.wait_for_profiler_to_end()
    ratio = low_quartile(runs["with"], lambda run: run.target_cpu_s) / low_quartile(runs["without"], lambda run: run.target_cpu_s)
    walls = low_quartile(runs["with"], lambda run: run.wall_s) / low_quartile(runs["without"], lambda run: run.wall_s)
    return Row("target's CPU, an upload every second against a file", "x%.3f" % ratio, "wall x%.3f" % walls, goal="< x1.01", met=ratio < 1.01)
