"""Where CPU time goes, against puppets that know the truth, and against another reader of the same file."""

import collections
import concurrent.futures
import math
import os
import re
import shutil
import subprocess
import unittest

import harness
import pprof


def deviation(share, samples):
    return math.sqrt(share * (1 - share) / samples)


class Shares(harness.SystemTest):
    """A share measured with n samples has a standard deviation of at most sqrt(p (1 - p) / n)."""

    recordings = {}

    def recording(self, threads, seconds, frequency):
        key = (threads, seconds, frequency)
        if key not in self.recordings:
            self.recordings[key] = self.record([self.puppet("split"), str(threads), str(seconds)], ["-F", str(frequency)])
        return self.recordings[key]

    def assert_share(self, recording, function, share):
        samples = recording.count()
        measured = recording.count(function) / samples
        self.assertLess(abs(measured - share), 4 * deviation(share, samples), "%s: %.4f of %d samples" % (function, measured, samples))
        by_time = recording.cpu_ns(lambda s: recording.has(s, function)) / recording.cpu_ns()
        self.assertLess(abs(by_time - share), 4 * deviation(share, samples), "%s: %.4f of the CPU time" % (function, by_time))

    def assert_split(self, recording):
        self.assert_share(recording, "spend_70", 0.70)
        self.assert_share(recording, "spend_20", 0.20)
        self.assert_share(recording, "spend_10", 0.10)

    def assert_enough_samples(self, recording, expected):
        self.assert_sampled(recording, expected)
        self.assertLess(recording.count(), 1.3 * expected)

    def test_one_thread_has_its_true_shares(self):
        recording = self.recording(1, 4, 99)
        self.assert_enough_samples(recording, 4 * 99)
        self.assert_split(recording)

    def test_eight_threads_have_their_true_shares(self):
        recording = self.recording(8, 1, 999)
        self.assert_enough_samples(recording, 8 * 999)
        self.assert_split(recording)

    def test_the_total_is_what_the_program_spent(self):
        for threads, seconds, frequency in ((1, 4, 99), (8, 1, 999)):
            recording = self.recording(threads, seconds, frequency)
            self.assertAlmostEqual(recording.cpu_ns() / 1e9, threads * seconds, delta=0.01 * threads * seconds)

    def test_each_thread_has_its_own_total(self):
        recording = self.recording(8, 1, 999)
        spent = collections.Counter()
        for sample in recording.profile.samples:
            if recording.has(sample, "spend"):
                spent[sample.labels[harness.THREAD_ID]] += sample.values[recording.profile.types.index(harness.CPU)]
        self.assertEqual(len(spent), 8)
        for thread, nanoseconds in spent.items():
            self.assertAlmostEqual(nanoseconds / 1e9, 1.0, delta=0.15, msg="thread %s" % thread)

    def test_go_tool_pprof_agrees_to_the_sample(self):
        if not shutil.which("go"):
            self.skipTest("go is not installed (golang-go)")
        for recording in (self.recording(1, 4, 99), self.recording(8, 1, 999)):
            flat, cumulative = go_top(recording.path)
            our_flat, our_cumulative = our_top(recording.profile)
            self.assertEqual(flat, our_flat)
            self.assertEqual(cumulative, our_cumulative)
            self.assertEqual(go_raw_totals(recording.path),
                             [pprof.total(recording.profile, column) for column in recording.profile.types])

    def test_rust_and_go_programs_have_their_true_shares(self):
        for name, hot, cold in (("rust_shares", "rust_hot", "rust_cold"), ("go_shares", "goHot", "goCold")):
            with self.subTest(name):
                recording = self.record([self.puppet(name), "1"], ["-F", "499"])
                self.assert_share(recording, hot, 0.75)
                self.assert_share(recording, cold, 0.25)

    @harness.tries(3)
    def test_what_go_calls_on_the_stack_of_the_thread_belongs_to_the_goroutine_that_asked(self):
        recording = self.record([self.puppet("go_switches"), "2"], ["-F", "499"])
        in_c = [sample for sample in recording.samples() if recording.has(sample, "c_work")]
        continued = [sample for sample in in_c if recording.has(sample, "main.goCaller")]
        count = lambda samples: sum(sample.values[0] for sample in samples)
        self.assertGreater(count(in_c), 200)
        # The goroutine is read from memory a moment later, when the call may be over.
        self.assertGreater(count(continued), 0.7 * count(in_c))
        for sample in continued:
            self.assertTrue(recording.has(sample, "main.main") and recording.has(sample, "runtime.goexit.abi0"), sample.stack)
        collecting = [sample for sample in recording.samples() if recording.has(sample, "runtime.systemstack.abi0")]
        self.assertTrue(any(recording.has(sample, "runtime.goexit.abi0") for sample in collecting))
        for sample in collecting + [sample for sample in recording.samples() if recording.has(sample, "main.goAllocator")]:
            self.assertFalse(recording.has(sample, "c_work"), sample.stack)

    def test_any_event_period_gives_the_same_shares(self):
        recording = self.record([self.puppet("split"), "1", "1"], ["-e", "sCPU period=2000000"])
        self.assert_enough_samples(recording, 500)
        self.assert_split(recording)


class ShortTasks(harness.SystemTest):
    """Each task spends half of its time in one function, and then half in another. Events of tasks are in step with that."""

    @harness.needs_root
    def assert_halves(self, kind, milliseconds, idle):
        """As root, where events of CPUs are permitted, and without privilege, at the same time."""
        with harness.paranoid(2), concurrent.futures.ThreadPoolExecutor() as pool:
            as_root = pool.submit(self.assert_halves_by, kind, milliseconds, idle, "perf events per CPU (short tasks: ")
            as_nobody = pool.submit(self.assert_halves_by, kind, milliseconds, idle, "perf events per task (short tasks: ", True)
            as_root.result()
            as_nobody.result()

    @harness.tries(3)
    def assert_halves_by(self, kind, milliseconds, idle, engine, as_nobody=False):
        """From the second after that in which it was found that short tasks matter."""
        folder = self.path("halves%d" % next(self.numbers))
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        command = [self.binary, "record", "-u", "1", "-O", folder + "/", "--", self.puppet("halves"), kind, str(milliseconds), "6", str(idle)]
        result = self.run_command(harness.unprivileged(command) if as_nobody else command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(engine, result.stderr)
        profiles = [pprof.read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".pb.gz")]
        settled = [profile for profile in profiles if any(engine in comment for comment in profile.comments)][1:]

        def total(column, function):
            return sum(pprof.total(profile, column, lambda sample: function in sample.stack) for profile in settled)
        samples = total(harness.COUNT, "first_half") + total(harness.COUNT, "second_half")
        self.assertGreater(samples, 200)
        for column in (harness.CPU, harness.COUNT):
            first, second = total(column, "first_half"), total(column, "second_half")
            self.assertLess(abs(first / (first + second) - 0.5), 3 * deviation(0.5, samples), "%s: %d and %d" % (column, first, second))
        spent = sum(pprof.total(profile, harness.CPU) for profile in settled)
        # Without privilege time in the kernel, a quarter of a process of 1 ms, has no samples.
        self.assertGreater(total(harness.CPU, "first_half") + total(harness.CPU, "second_half"), (0.6 if as_nobody else 0.8) * spent)

    def test_threads_of_1_ms(self):
        self.assert_halves("thread", 1, 0)

    @harness.needs_root
    def test_processes_of_1_ms_without_privilege(self):
        with harness.paranoid(2):
            self.assert_halves_by("process", 1, 0, "perf events per task (short tasks: ", True)

    def test_processes_of_8_ms_after_an_idle_stretch(self):
        self.assert_halves("process", 8, 2)

    def test_threads_of_16_ms(self):
        self.assert_halves("thread", 16, 0)

    def test_threads_of_50_ms(self):
        self.assert_halves("thread", 50, 0)

    @harness.needs_root
    def test_a_storm_after_an_idle_start_is_noticed(self):
        recording = self.record(["bash", "-c", "sleep 2; for i in $(seq 1500); do /bin/true; done"])
        self.assertIn("perf events per CPU (short tasks: ", recording.stderr)
        self.assertGreater(recording.count(), 30)


def our_top(profile):
    column = profile.types.index(harness.COUNT)
    flat, cumulative = collections.Counter(), collections.Counter()
    for sample in profile.samples:
        flat[sample.stack[0]] += sample.values[column]
        for name in set(sample.stack):
            cumulative[name] += sample.values[column]
    return +flat, +cumulative


def go_pprof(*arguments):
    environment = dict(os.environ, PPROF_TMPDIR="/tmp", PPROF_BINARY_PATH="/nonexistent")
    return subprocess.run(["go", "tool", "pprof", "-symbolize=none", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True, timeout=harness.PATIENCE, env=environment).stdout


def go_top(path):
    text = go_pprof("-top", "-sample_index=samples", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000", path)
    flat, cumulative = collections.Counter(), collections.Counter()
    rows = text[text.index("flat%"):].splitlines()[1:]
    for row in rows:
        own, _, _, total, _, name = row.split(None, 5)
        name = re.sub(r" \((partial-)?inline\)$", "", name)
        flat[name] += int(own)
        cumulative[name] += int(total)
    return +flat, +cumulative


def go_raw_totals(path):
    """The sums of all value columns, from the listing of samples."""
    text = go_pprof("-raw", path)
    totals = None
    for row in text[text.index("\nSamples:"):text.index("\nLocations")].splitlines():
        match = re.match(r"^\s+(-?\d+(?:\s+-?\d+)*): ", row)
        if match:
            values = [int(value) for value in match.group(1).split()]
            totals = values if totals is None else [a + b for a, b in zip(totals, values)]
    return totals


if __name__ == "__main__":
    unittest.main()
