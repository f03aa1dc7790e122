"""An ordinary user at perf_event_paranoid 2: the same commands, user frames only, and the summary says so."""

import os
import subprocess
import unittest

import harness
import pprof

KERNEL_HALF = 1 << 63


def kernel_frames(recording):
    return sum(any(address >= KERNEL_HALF for address in sample.addresses) for sample in recording.profile.samples)


class Unprivileged(harness.SystemTest):
    # Reading zeros is time in the kernel, for the most part.
    KERNEL_HEAVY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=20000"]

    def test_record_works_with_user_frames_only_and_says_so(self):
        with harness.paranoid(2):
            recording = self.record([self.puppet("split"), "2", "1"], as_nobody=True)
        self.assert_sampled(recording, 0.7 * 2 * 99, "spend_70")
        self.assertEqual(kernel_frames(recording), 0)
        self.assertRegex(recording.stderr, r"(?i)user frames only|no kernel frames|without kernel frames")

    def test_the_wrapper_works(self):
        path = self.path("wrapped.pb.gz")
        command = [self.binary, "-O", path, self.puppet("split"), "1", "0.5"]
        with harness.paranoid(2):
            result = self.run_command(harness.unprivileged(command))
            self.wait_until_profiler_ends()
        self.assertEqual(result.returncode, 0, result.stderr)
        recording = harness.Recording(result, path)
        self.assert_sampled(recording, 0.7 * 0.5 * 99, "spend_70")
        self.assertEqual(kernel_frames(recording), 0)

    def test_attaching_to_an_own_process_works(self):
        target = subprocess.Popen(harness.unprivileged([self.puppet("many_threads"), "2"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(target.communicate)
        self.addCleanup(target.kill)
        target.stdout.readline()
        path = self.path("attached.pb.gz")
        with harness.paranoid(2):
            result = self.run_command(harness.unprivileged([self.binary, "-p", str(target.pid), "-d", "1", "-O", path]))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_sampled(harness.Recording(result, path), 99, "burn_forever")

    def test_time_in_the_kernel_has_a_name_and_a_size(self):
        with harness.paranoid(2):
            recording = self.record(self.KERNEL_HEAVY, as_nobody=True)
        hidden = recording.cpu_ns(lambda s: pprof.find_frame(s, "[kernel: not permitted") is not None)
        self.assertGreater(hidden / recording.cpu_ns(), 0.5)

    @harness.needs_root
    def test_root_sees_kernel_frames(self):
        recording = self.record(self.KERNEL_HEAVY)
        self.assertGreater(kernel_frames(recording), 0)
        self.assertNotRegex(recording.stderr, r"(?i)user frames only")

    def test_the_profile_belongs_to_the_user(self):
        with harness.paranoid(2):
            recording = self.record([self.puppet("cold_exit"), "code", "0"], as_nobody=True)
        self.assertEqual(os.stat(recording.path).st_uid, harness.NOBODY if harness.IS_ROOT else os.getuid())


if __name__ == "__main__":
    unittest.main()
