"""The profile adds up: its CPU total is what the kernel charged, however short the tasks were."""

import unittest

import harness
import pprof

UNSAMPLED = "[unsampled"


class Accounting(harness.SystemTest):
    def assert_adds_up(self, recording):
        charged = harness.last_json(recording.stdout)["total_ns"]
        self.assertAlmostEqual(recording.cpu_ns() / charged, 1.0, delta=0.01,
                               msg="%.3f s in the profile, %.3f s charged\n%s" % (recording.cpu_ns() / 1e9, charged / 1e9, recording.stderr))

    def fork_storm(self, **options):
        return self.record([self.puppet("fork_storm"), "2000", "1"], **options)

    def thread_storm(self, **options):
        return self.record([self.puppet("thread_storm"), "40000"], **options)

    @harness.needs_root
    def test_two_thousand_short_processes_are_seen_and_add_up(self):
        recording = self.fork_storm()
        self.assert_adds_up(recording)
        self.assert_sampled(recording, 2 * 99, "burn_in_child")

    @harness.needs_root
    def test_forty_thousand_threads_are_seen_and_add_up(self):
        recording = self.thread_storm()
        self.assert_adds_up(recording)
        self.assert_sampled(recording, 2 * 99)

    def test_short_processes_add_up_without_privileges(self):
        with harness.paranoid(2):
            recording = self.fork_storm(as_nobody=True)
        self.assert_adds_up(recording)
        unsampled = [s for s in recording.profile.samples if pprof.find_frame(s, UNSAMPLED)]
        nanoseconds = recording.cpu_ns(lambda s: pprof.find_frame(s, UNSAMPLED) is not None)
        self.assertGreater(nanoseconds, 200_000_000, "those that ended before it was known that short ones matter had no samples")
        self.assertGreater(recording.cpu_ns(lambda s: recording.has(s, "burn_in_child")), 0, "later ones have")
        for sample in unsampled:
            self.assertEqual(sample.labels[harness.PROCESS_NAME], "fork_storm")
            self.assertEqual(sample.values[recording.profile.types.index(harness.COUNT)], 0, "no sample stands for it")

    def test_threads_add_up_without_privileges(self):
        with harness.paranoid(2):
            self.assert_adds_up(self.thread_storm(as_nobody=True))

    @harness.tries(3)
    def test_a_high_rate_adds_up_too(self):
        recording = self.record([self.puppet("fork_storm"), "20", "50"], ["-F", "4999"])
        self.assert_adds_up(recording)

    def test_a_rate_too_low_for_any_sample_adds_up(self):
        recording = self.record([self.puppet("fork_storm"), "50", "20"], ["-F", "1"])
        self.assert_adds_up(recording)

    def test_page_faults_are_counted_in_their_own_column(self):
        recording = self.record(["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=4"], ["-e", "sPF period=1", "-e", "sCPU"])
        faults = [name for name in recording.profile.types if "fault" in name]
        self.assertTrue(faults, recording.profile.types)
        self.assertGreater(pprof.total(recording.profile, faults[0]), 20)


if __name__ == "__main__":
    unittest.main()
