"""Servers under a load whose moments are fixed beforehand: running them with and without the profiler, and comparing latencies."""

import array
import collections
import contextlib
import json
import os
import statistics
import time

import measure

SERVICE_S = 0.0005  # CPU time of one request
WARM_UP_S = 0.5  # load before a run, not counted: the profiler reads about what it has not seen yet
FREQUENCY = 99

Answer = collections.namedtuple("Answer", "due_s latency_s server")  # due: since the start of the run


class Run(collections.namedtuple("Run", "answers start_ns target_cpu_s own_cpu_s seconds")):
    """start_ns: CLOCK_MONOTONIC. CPU times are sums over all servers, and over all processes of the profiler."""

    def latencies(self, where=lambda answer: True):
        return sorted(answer.latency_s for answer in self.answers if where(answer))

    def cpu_per_request(self):
        return self.target_cpu_s / len(self.answers)


def quantile(share):
    return lambda ordered: ordered[min(len(ordered) - 1, int(len(ordered) * share))]


STATISTICS = {"mean": statistics.fmean, "p50": quantile(0.5), "p99": quantile(0.99), "p99.9": quantile(0.999)}


class Site:
    """Servers whose requests take about SERVICE_S, on this machine, and how many requests a second it can serve."""

    def __init__(self, bench):
        self.bench = bench
        self.server, self.load = bench.program("request_server"), bench.program("request_load")
        self.threads = len(os.sched_getaffinity(0))
        self.warm_up_s = 0.1 if bench.quick else WARM_UP_S
        self.units = trial = 40
        self.units = max(1, round(trial * SERVICE_S / self.saturate(1)[0]))
        self.capacity = max(self.saturate(self.threads)[1] for _ in range(1 if bench.quick else 3))  # disturbances only lower it

    def saturate(self, threads):
        """(CPU time of a request, requests per second) of a server that always has something to do."""
        seconds = 0.4 if self.bench.quick else 1
        with self.servers([measure.bare], threads) as (pids, sockets):
            before = measure.cpu_ns(pids)
            answered = self.ask(sockets, 0, seconds)["answered"]
            return (measure.cpu_ns(pids) - before) / 1e9 / answered, answered / seconds

    @contextlib.contextmanager
    def servers(self, profilers, threads):
        """One server for each of the profilers (measure.bare, or what wraps a command): their processes and sockets."""
        sockets, children = [self.bench.path("server%d" % i) for i in range(len(profilers))], []
        try:
            for socket, profiler in zip(sockets, profilers):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(socket)
                children.append(self.bench.start(profiler([self.server, socket, str(threads), str(self.units)]), is_service=True))
            for child in children:
                if child.stdout.readline() != "ready\n":
                    raise RuntimeError("a server did not start: " + child.communicate()[1])
            yield [child.pid for child in children], sockets
        finally:
            for child in children:
                child.kill()
                child.communicate()

    def ask(self, sockets, rate, seconds):
        """Loads each server with `rate` requests a second; the answers are in the file `answers` afterwards."""
        account = json.loads(self.bench.run_once([self.load, self.bench.path("answers"), str(seconds), "%.3f" % rate, *sockets]).stdout)
        if rate and account["unanswered"]:
            answered = collections.Counter(answer.server for answer in self.answers(0))
            raise RuntimeError("%d requests were not answered; the servers answered %s" % (
                account["unanswered"], ", ".join(str(answered[server]) for server in range(len(sockets)))))
        return account

    def answers(self, start_ns):
        numbers = array.array("Q")
        with open(self.bench.path("answers"), "rb") as file:
            numbers.frombytes(file.read())
        triples = zip(numbers[0::3], numbers[1::3], numbers[2::3])
        return [Answer((due - start_ns) / 1e9, latency / 1e9, server) for due, latency, server in triples]

    def run(self, profilers, rate, seconds, threads=None):
        """One run of servers that are asked `rate` times a second each."""
        with self.servers(profilers, threads or self.threads) as (pids, sockets):
            self.ask(sockets, rate, self.warm_up_s)
            target, own = measure.cpu_ns(pids), own_cpu_ns(self.bench)
            account = self.ask(sockets, rate, seconds)
            target, own = measure.cpu_ns(pids) - target, grown(own, own_cpu_ns(self.bench))
        if any(profiler is not measure.bare for profiler in profilers):
            self.bench.wait_for_profiler_to_end()  # its last profile must not disturb the next run
        return Run(self.answers(account["start"]), account["start"], target / 1e9, own / 1e9, seconds)

    def wrapper(self, period):
        """The way of production, but for periods so short that some end within a run."""
        def wrap(command):
            return self.bench.ddprof_wrapper(["-F", str(FREQUENCY), *command], period)
        return wrap

    @contextlib.contextmanager
    def whole_host(self, period):
        """`ddprof -g` for as long as it lasts."""
        child = self.bench.start(self.bench.ddprof_wrapper(["-F", str(FREQUENCY), "-g"], period))
        try:
            self.bench.profiler_pids()
            time.sleep(WARM_UP_S)  # it reads about every process that there is
            if child.poll() is not None:
                raise RuntimeError("ddprof -g ended: " + child.communicate()[1])
            yield
        finally:
            child.terminate()
            child.communicate()


def own_cpu_ns(bench):
    """By process: the profiler may have several, and replace them."""
    found = {}
    for pid in measure.processes_of(bench.binary):
        with contextlib.suppress(OSError):
            found[pid] = measure.process_cpu_ns(pid)
    return found


def grown(before, after):
    return sum(cpu - before.get(pid, 0) for pid, cpu in after.items())


def alternate(rounds, bare, profiled):
    """Runs of both kinds in turns, two of each a round, so that what drifts disturbs both alike: [(bare runs, profiled runs)]."""
    found = []
    for number in range(rounds):
        pair = ([], [])
        for kind in (0, 1, 1, 0) if number % 2 == 0 else (1, 0, 0, 1):
            pair[kind].append((bare, profiled)[kind]())
        found.append(pair)
    return found


def pooled(runs, where=lambda answer: True):
    return sorted(latency for run in runs for latency in run.latencies(where))


def ratios(rounds, statistic):
    """Of each round: profiled to bare."""
    return [statistic(pooled(profiled)) / statistic(pooled(bare)) for bare, profiled in rounds]


def noise(rounds, statistic):
    """Of each round: one bare run to the other. What profiling changes by less than this cannot be seen."""
    return [statistic(second.latencies()) / statistic(first.latencies()) for (first, second), _ in rounds]


def percent(value):
    return "%+.1f %%" % ((value - 1) * 100)
