"""The profiler stays within the budget that it was given, and what it then leaves out does not falsify the profile."""

import contextlib
import math
import os
import signal
import subprocess
import unittest

import harness
import pprof
import test_faults


class Limits(harness.SystemTest):
    @harness.tries(3)
    def test_fewer_samples_within_a_cpu_budget_and_the_same_shares(self):
        recording = self.record([self.puppet("split"), "2", "8"], ["-F", "24999", "--max-cpu", "1"])
        self.assertRegex(recording.stderr, r"slowed +one of \d+ samples is taken")
        self.assertRegex(recording.stderr, r"(?m)^ddprof: --max-cpu 1 is reached: one of \d+ samples is taken$")
        self.assertTrue(any("slowed down" in comment for comment in recording.profile.comments))
        total = recording.cpu_ns()
        self.assertAlmostEqual(total / 1e9, 16, delta=0.3)
        sampled = total - recording.cpu_ns(lambda sample: pprof.find_frame(sample, pprof.ACCOUNTED) is not None)
        self.assertGreater(sampled / total, 0.5)
        for name, share in (("spend_70", 0.7), ("spend_20", 0.2), ("spend_10", 0.1)):
            seen = recording.cpu_ns(lambda sample: recording.has(sample, name)) / sampled
            # How many samples are left depends on how slow the machine is: four standard deviations of that.
            self.assertAlmostEqual(seen, share, delta=max(0.02, 4 * math.sqrt(share * (1 - share) / recording.count())))

    def test_the_worker_stays_on_one_core(self):
        service = test_faults.Service(self)
        service.wait_for_profiles(2)
        allowed = {harness.read_text("/proc/%d/task/%s/status" % (service.worker, task)).split("Cpus_allowed_list:\t")[1].split("\n")[0]
                   for task in os.listdir("/proc/%d/task" % service.worker)}
        self.assertEqual(len(allowed), 1)
        self.assertRegex(allowed.pop(), r"^\d+$")
        target = harness.read_text("/proc/%d/status" % service.process.pid)
        self.assertIn("Cpus_allowed_list:\t%s\n" % harness.read_text("/proc/self/status").split("Cpus_allowed_list:\t")[1].split("\n")[0], target)
        service.end()

    def find_worker(self, supervisor):
        with contextlib.suppress(OSError):
            return next((pid for pid in harness.processes_of(self.binary)
                         if test_faults.os_parent(pid) == supervisor and os.getpgid(pid) == pid), None)

    def test_a_recording_by_several_workers_is_one_file(self):
        path = self.path("parts.pb.gz")
        profiler = subprocess.Popen([self.binary, "record", "-O", path, "--", self.puppet("split"), "1", "2"], stderr=subprocess.PIPE, text=True,
                                    env=self.environment())
        self.addCleanup(profiler.kill)
        for _ in range(2):
            worker = harness.wait_for(lambda: self.find_worker(profiler.pid), 10, "a worker")
            os.kill(profiler.pid, signal.SIGUSR1)
            harness.wait_for(lambda: not os.path.exists("/proc/%d" % worker), 10, "it to end")
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        self.assertIn("replaced 2 times: 2 as scheduled", stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        self.assertAlmostEqual(recording.cpu_ns() / 1e9, 2, delta=0.1)
        self.assertGreater(recording.count("spend_70"), 50)


if __name__ == "__main__":
    unittest.main()
