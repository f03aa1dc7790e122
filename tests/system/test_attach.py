"""Attaching to what runs already: one process with all its threads, or the whole host."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import time
import unittest

import harness


class Attach(harness.SystemTest):
    def start(self, name, *arguments):
        process = subprocess.Popen([self.puppet(name), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def attach(self, *options, **run_options):
        path = self.path("attached_%d.pb.gz" % next(self.numbers))
        result = self.ddprof(*options, "-O", path, **run_options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def test_every_one_of_two_hundred_threads_is_sampled(self):
        target = self.start("many_threads", "200")
        threads = set(json.loads(target.stdout.readline())["tids"])
        recording = self.attach("-p", str(target.pid), "-d", "4", "-F", "999")
        sampled = {s.labels[harness.THREAD_ID] for s in recording.samples() if recording.has(s, "burn_forever")}
        self.assertEqual(threads - set(map(int, sampled)), set())
        self.assertEqual(recording.labels(harness.PROCESS_NAME), {"many_threads"})
        self.assertIn("worker-7", recording.labels(harness.THREAD_NAME))
        self.assertIsNone(target.poll(), "the target must survive its profiler")

    def test_threads_born_while_attaching_are_sampled(self):
        target = self.start("many_threads", "20")
        target.stdout.readline()
        path = self.path("late.pb.gz")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-d", "4", "-F", "999", "-O", path],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        late = set()
        for _ in range(5):
            target.send_signal(signal.SIGUSR1)
            late |= set(json.loads(target.stdout.readline())["tids"])
        _, stderr = profiler.communicate(timeout=60)
        self.assertEqual(profiler.returncode, 0, stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        sampled = {int(s.labels[harness.THREAD_ID]) for s in recording.samples()}
        self.assertEqual(late - sampled, set())

    def test_it_ends_with_the_target(self):
        target = self.start("cold_exit", "stdin")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-d", "600", "-O", self.path("ended.pb.gz")],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(profiler.kill)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        target.communicate()
        _, stderr = profiler.communicate(timeout=20)
        self.assertEqual(profiler.returncode, 0, stderr)

    def test_an_interrupt_ends_it_with_a_profile(self):
        target = self.start("many_threads", "2")
        target.stdout.readline()
        path = self.path("interrupted.pb.gz")
        profiler = subprocess.Popen([self.binary, "-p", str(target.pid), "-O", path], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True)
        harness.wait_for(lambda: is_attached(profiler.pid), 20, "the profiler to attach")
        time.sleep(0.5)  # what is collected, not a synchronisation
        profiler.send_signal(signal.SIGINT)
        _, stderr = profiler.communicate(timeout=20)
        self.assertTrue(os.path.exists(path), stderr)
        self.assertIsNone(target.poll())

    def test_a_pid_that_does_not_exist_is_named(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        result = self.ddprof("-p", str(gone.pid), "-d", "1", "-O", self.path("none.pb.gz"))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, str(gone.pid), "no such process|does not exist|no process")

    def test_a_process_of_another_user_is_refused_with_the_reason(self):
        if not harness.IS_ROOT:
            self.skipTest("needs root, to own the target while another user attaches")
        target = self.start("cold_exit", "stdin")
        with harness.paranoid(2):
            command = [self.binary, "-p", str(target.pid), "-d", "1", "-O", self.path("other.pb.gz")]
            result = self.run_command(harness.unprivileged(command))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, str(target.pid), "permi|another user")

    @harness.needs_root
    def test_the_whole_host_is_seen(self):
        target = self.start("many_threads", "2")
        target.stdout.readline()
        recording = self.attach("-g", "-d", "2", "-F", "199")
        self.assertIn("many_threads", recording.labels(harness.PROCESS_NAME))
        self.assert_sampled(recording, 2 * 199, "burn_forever")

    def test_the_whole_host_is_refused_without_privileges(self):
        with harness.paranoid(2):
            command = [self.binary, "-g", "-d", "1", "-O", self.path("host.pb.gz")]
            result = self.run_command(harness.unprivileged(command))
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, "perf_event_paranoid|CAP_PERFMON|root")


def is_attached(pid):
    """Whether the profiler has opened its rings, and events on a task beside them."""
    events = 0
    for link in glob.glob("/proc/%d/fd/*" % pid):
        with contextlib.suppress(OSError):
            events += "perf_event" in os.readlink(link)
    # Per CPU: a ring for samples, one for totals, and an event for each.
    return events >= 4 * os.cpu_count()


if __name__ == "__main__":
    unittest.main()
