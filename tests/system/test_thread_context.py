"""Traces, spans and endpoints: what threads publish about what they do (OTEPs 4719 and 4947) becomes labels of their samples, and never
of others. The truth is in the puppet: a request is served in the function of its endpoint, and its span says which request it was."""

import contextlib
import os
import signal
import subprocess
import unittest

import harness
import pprof

SERVING = {"serve_cart": "/cart", "serve_pay": "/pay", "serve_search": "/search", "serve_login": "/login"}
FUNCTIONS = list(SERVING)
LABELS = ["span id", "local root span id", "trace endpoint", "trace id", "customer"]
U64 = (1 << 64) - 1


def served_by(sample):
    return next((index for index, name in enumerate(FUNCTIONS) if name in sample.stack), None)


def expected_labels(sample, span):
    endpoint = served_by(sample)
    if endpoint is None or span >> 48 & 0xFF != endpoint or sample.labels["thread name"] != "worker-%d" % ((span >> 56) - 1):
        return None
    return [span, span ^ 1, SERVING[FUNCTIONS[endpoint]], "ab" * 8 + "%016x" % span, "c%d" % endpoint]


class Counts:
    """Samples of one or more profiles: right and wrong labels, and none, in and out of requests."""

    def __init__(self, *profiles):
        self.right = self.wrong = self.missing = self.outside = 0
        self.examples = []
        for profile in profiles:
            for sample in profile.samples:
                self.add(sample, sample.values[profile.types.index(harness.COUNT)])

    def add(self, sample, count):
        if not any(key in sample.labels for key in LABELS):
            if served_by(sample) is None:
                self.outside += count
            else:
                self.missing += count
            return
        found = [sample.labels.get(key) for key in LABELS]
        found[:2] = [number & U64 if number is not None else None for number in found[:2]]
        if found == expected_labels(sample, found[0] or 0):
            self.right += count
        else:
            self.wrong += count
            self.examples.append((sample.stack[:4], found))

    def __str__(self):
        return "%d right, %d wrong, %d missing, %d outside of requests %s" % (
            self.right, self.wrong, self.missing, self.outside, self.examples[:3])


@unittest.skipUnless(harness.IS_ROOT, "needs root: the kernel lets nobody else read thread contexts")
class ThreadContext(harness.SystemTest):
    def assert_labelled(self, *profiles, share=0.9):
        counts = Counts(*profiles)
        print(self.id().rsplit(".", 1)[-1], counts)
        self.assertEqual(counts.wrong, 0, counts)
        self.assertGreater(counts.right, share * (counts.right + counts.missing), counts)
        self.assertGreater(counts.outside, 0, counts)
        return counts

    def assert_unlabelled(self, *profiles):
        counts = Counts(*profiles)
        self.assertEqual((counts.right, counts.wrong), (0, 0), counts)
        self.assertGreater(counts.missing, 0, counts)

    def library(self):
        return self.puppet("libtraced_context.so")

    def test_a_variable_of_the_program(self):
        self.assert_labelled(self.record([self.puppet("traced"), "1.5"], ["-F", "499"]).profile)

    def test_a_variable_of_a_static_program(self):
        self.assert_labelled(self.record([self.puppet("traced_static"), "1.5"], ["-F", "499"]).profile)

    def test_a_variable_of_a_linked_library(self):
        environment = dict(self.environment(), LD_LIBRARY_PATH=os.path.dirname(self.library()))
        recording = self.record([self.puppet("traced_linked"), "1.5"], ["-F", "499"], env=environment)
        self.assert_labelled(recording.profile)

    def test_a_variable_of_a_library_that_was_loaded_later(self):
        self.assert_labelled(self.record([self.puppet("traced_loaded"), "1.5", "", self.library()], ["-F", "499"]).profile)

    def test_beside_the_program_and_with_times(self):
        path = self.path("beside.pb.gz")
        result = self.ddprof("-O", path, "--timeline", self.puppet("traced"), "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.wait_until_profiler_ends()
        self.assert_labelled(pprof.read(path), share=0.8)

    def test_without_capabilities(self):
        self.assert_labelled(self.record([self.puppet("traced"), "1.5"], ["-F", "499", "--drop-caps"]).profile)

    def test_events_of_cpus(self):
        target = subprocess.Popen([self.puppet("traced"), "60"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        path = self.path("attached.pb.gz")
        result = self.ddprof("-p", str(target.pid), "-d", "2", "-F", "499", "-O", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_labelled(pprof.read(path))
        whole_host = self.path("host.pb.gz")
        result = self.ddprof("-g", "-d", "2", "-F", "499", "-O", whole_host, "--include", "name:traced")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_labelled(pprof.read(whole_host))

    def test_a_context_that_is_published_later_is_found(self):
        counts = Counts(self.record([self.puppet("traced"), "3", "late"], ["-F", "199"]).profile)
        self.assertEqual(counts.wrong, 0, counts)
        self.assertGreater(counts.right, counts.missing / 10, counts)

    def test_another_worker_goes_on(self):
        folder = self.path("periods")
        os.makedirs(folder)
        profiler = subprocess.Popen([self.binary, "record", "-u", "1", "-F", "199", "-O", folder + "/", "--", self.puppet("traced"), "5"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(profiler.kill)
        profiles = lambda: sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".pb.gz"))
        harness.wait_for(profiles, 20, "the first profile")
        worker = self.find_worker(profiler.pid)
        profiler.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: self.find_worker(profiler.pid) not in (None, worker), 20, "another worker")
        before = len(profiles())
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        self.assertGreater(len(profiles()), before)
        self.assert_labelled(*map(pprof.read, profiles()))
        self.assert_labelled(pprof.read(profiles()[-2]))

    def find_worker(self, supervisor):
        for pid in harness.processes_of(self.binary):
            with contextlib.suppress(OSError):
                if int(harness.read_text("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[1]) == supervisor:
                    return pid
        return None

    def test_nothing_is_read_where_nothing_is_published(self):
        self.assert_unlabelled(self.record([self.puppet("traced"), "1", "silent"]).profile)

    def test_users_without_privileges_have_profiles_without_contexts(self):
        self.assert_unlabelled(self.record([self.puppet("traced"), "1"], as_nobody=True).profile)


if __name__ == "__main__":
    unittest.main()
