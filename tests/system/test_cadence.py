"""Profiles of a part of every period: what they hold is the CPU time of that part, and nothing happens between them."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

import harness
import pprof

WINDOW, PERIOD = 1, 3


class Truth(threading.Thread):
    """What the kernel says that the target has used, many times a second."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.points, self.is_done = pid, [], threading.Event()
        self.start()

    def run(self):
        is_last = False  # a last time when all profiles are there: none of them ends after it
        while not is_last:
            is_last = self.is_done.wait(0.005)
            with contextlib.suppress(OSError):
                used = sum(int(harness.read_text("/proc/%d/task/%s/schedstat" % (self.pid, tid)).split()[0])
                           for tid in os.listdir("/proc/%d/task" % self.pid))
                self.points.append((time.time_ns(), used, harness.stolen() * 1e9))

    def at(self, moment):
        """By interpolation: what the target has used, and what was stolen from all CPUs."""
        for (before, *low), (after, *high) in zip(self.points, self.points[1:]):
            if before <= moment <= after:
                return [one + (other - one) * (moment - before) / (after - before) for one, other in zip(low, high)]
        raise AssertionError("nobody looked at that time")

    def between(self, profile):
        return [end - begin for begin, end in zip(self.at(profile.time_ns), self.at(profile.time_ns + profile.duration_ns))]


class Run:
    """Threads that burn until they are told to end, under a profiler with pauses."""

    def __init__(self, test, *options):
        self.test, self.profiles = test, test.path("profiles%d" % next(test.numbers))
        os.makedirs(self.profiles)
        command = [test.binary, "--cpu-duration", str(WINDOW), "--period", str(PERIOD), "-F", "499", "-O", self.profiles + "/"]
        self.process = subprocess.Popen(command + [*options, test.puppet("many_threads"), "4"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=test.environment())
        test.addCleanup(self.process.kill)
        self.process.stdout.readline()
        self.truth = Truth(self.process.pid)

    def paths(self):
        return sorted(os.path.join(self.profiles, name) for name in os.listdir(self.profiles) if name.endswith(".pb.gz"))

    def wait_for_profiles(self, count):
        harness.wait_for(lambda: len(self.paths()) >= count, 40, "%d profiles" % count)

    def worker(self):
        """The child of the profiler's first process."""
        def find():
            with contextlib.suppress(OSError):
                ours = harness.processes_of(self.test.binary)
                parents = {pid: int(harness.read_text("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[1]) for pid in ours}
                return next((pid for pid, parent in parents.items() if parent in ours), None)
        return harness.wait_for(find, 20, "a worker")

    def end(self):
        self.truth.is_done.set()
        self.truth.join()
        self.process.stdin.close()
        self.test.assertEqual(self.process.wait(timeout=harness.PATIENCE), 0)
        self.process.stdout.close()
        self.process.stderr.close()
        self.test.wait_until_profiler_ends()
        return [pprof.read(path) for path in self.paths()]


class Cadence(harness.SystemTest):
    def assert_windows(self, run, profiles):
        for profile in profiles:
            self.assertAlmostEqual(profile.duration_ns / 1e9, WINDOW, delta=0.5)
            self.assertTrue(any("of a period of %d s" % PERIOD in line for line in profile.comments), profile.comments)
        for before, after in zip(profiles, profiles[1:]):
            self.assertAlmostEqual((after.time_ns - before.time_ns) / 1e9, PERIOD, delta=0.5)
        # The first one begins before anybody has looked at the target.
        for profile in profiles[1:]:
            true, stolen = run.truth.between(profile)
            self.assertAlmostEqual(pprof.total(profile, harness.CPU), true, delta=0.06 * true + 30e6 + stolen)

    def metrics(self, receiver):
        """Of each period, by name."""
        found = [{}]
        receiver.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                for line in receiver.recv(65536).decode().splitlines():
                    name, value = line.split("|")[0].split(":")
                    if name in found[-1]:
                        found.append({})
                    found[-1][name] = float(value)
        return [{name.replace("datadog.profiling.native.", ""): value for name, value in period.items()} for period in found]

    @harness.tries(3)
    def test_each_profile_is_of_the_first_part_of_its_period(self):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        statsd = self.path("statsd%d" % next(self.numbers))
        receiver.bind(statsd)
        run = Run(self, "--timeline", "-b", statsd)
        run.wait_for_profiles(3)
        profiles = run.end()  # in a pause, which leaves no profile behind

        self.assertEqual(len(profiles), 3)
        self.assert_windows(run, profiles)
        for profile in profiles:
            times = [sample.labels["end_timestamp_ns"] for sample in profile.samples if "end_timestamp_ns" in sample.labels]
            self.assertGreater(len(times), 20)
            if profile != profiles[0]:  # which says when the profiler was ready: the kernel has sampled since the exec
                self.assertGreaterEqual(min(times), profile.time_ns)
            self.assertLessEqual(max(times), profile.time_ns + profile.duration_ns)

        first, second, third = self.metrics(receiver)
        self.assertGreater(first["unwind.avg_time_ns"], 0)
        self.assertNotIn("symbols.time_ms", first)  # nothing has been named yet
        self.assertGreater(second["symbols.time_ms"], 0)
        for metrics, profile in zip((first, second, third), profiles):
            self.assertAlmostEqual(metrics["profile.duration_ms"], profile.duration_ns / 1e6, delta=1)
            cores = pprof.total(profile, harness.CPU) / profile.duration_ns
            self.assertAlmostEqual(metrics["target_process.cpu_usage.millicores"], 1000 * cores, delta=100)

    @harness.tries(3)
    def test_a_worker_that_is_killed_in_a_pause_comes_back_to_it(self):
        run = Run(self)
        run.wait_for_profiles(1)
        os.kill(run.worker(), signal.SIGKILL)
        run.wait_for_profiles(2)
        profiles = run.end()
        self.assertEqual(len(profiles), 2)
        self.assert_windows(run, profiles)
        self.assertIn("worker: replaced 1 times: 1 crashed", profiles[1].comments)


if __name__ == "__main__":
    unittest.main()
