"""The whole host: service names, filters, the number of processes, and days of processes that come and go."""

import contextlib
import glob
import itertools
import os
import re
import signal
import subprocess
import unittest

import harness
import pprof

IS_PERMITTED = harness.IS_ROOT or int(harness.read_text(harness.PARANOID)) <= 0


def threads_and_files(pids):
    """Threads and open descriptors of these processes."""
    threads = files = 0
    for pid in pids:
        threads += len(os.listdir("/proc/%d/task" % pid))
        files += len(os.listdir("/proc/%d/fd" % pid))
    return threads, files


def resident_kib(pids):
    return sum(int(re.search(r"VmRSS:\s+(\d+)", harness.read_text("/proc/%d/status" % pid)).group(1)) for pid in pids)


def has_events(binary):
    """Whether a process that runs this file has opened perf events."""
    for link in itertools.chain.from_iterable(glob.glob("/proc/%d/fd/*" % pid) for pid in harness.processes_of(binary)):
        with contextlib.suppress(OSError):
            if "perf_event" in os.readlink(link):
                return True
    return False


@unittest.skipUnless(IS_PERMITTED, "following the whole host needs CAP_PERFMON or kernel.perf_event_paranoid <= 0")
class Host(harness.SystemTest):
    def start(self, variables, name="many_threads"):
        """A program that burns on two threads, with these variables in its environment."""
        process = subprocess.Popen([self.puppet(name), "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **variables))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.readline()
        return process.pid

    def follow(self, *options, seconds=2):
        path = self.path("host_%d.pb.gz" % next(self.numbers))
        result = self.ddprof("-g", "-d", str(seconds), *options, "-O", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def values_of(self, recording, pid, label):
        return {s.labels.get(label) for s in recording.samples() if s.labels.get(harness.PROCESS_ID) == pid}

    def test_each_process_has_its_own_service(self):
        shop = self.start({"DD_SERVICE": "shop", "OTEL_SERVICE_NAME": "other"})
        cache = self.start({"OTEL_SERVICE_NAME": "cache"})
        plain = self.start({"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=plain"})
        bare = self.start({"DD_SERVICE": ""})
        recording = self.follow(seconds=4)
        self.assertEqual(self.values_of(recording, shop, "service"), {"shop"})
        self.assertEqual(self.values_of(recording, cache, "service"), {"cache"})
        self.assertEqual(self.values_of(recording, plain, "service"), {"plain"})
        self.assertEqual(self.values_of(recording, bare, "service"), {"many_threads"})

    def test_one_target_has_the_service_that_it_was_given(self):
        recording = self.record([self.puppet("split"), "1", "0.5"], options=["--service", "mine"], env=dict(self.environment(), DD_SERVICE="other"))
        self.assertEqual(recording.labels("service"), {None})
        self.assertIn("service: mine", recording.profile.comments)

    def test_only_what_is_included_is_profiled_and_the_rest_is_counted(self):
        # Other tests have a shop, at the same time and on the same machine.
        stall, cache = self.start({"DD_SERVICE": "stall"}), self.start({"DD_SERVICE": "cache"})
        recording = self.follow("--include", "service:stal?")
        self.assertEqual(recording.labels(harness.PROCESS_ID), {stall})
        self.assertRegex(recording.stderr, r"filtered +[\d,]+ samples \([\d.]+ s of CPU\) of \d+ processes, by --include and --exclude")

        # Others may run a program of that name.
        profiled = self.follow("--include", "name:many_*", "--exclude", "service:stall").labels(harness.PROCESS_ID)
        self.assertIn(cache, profiled)
        self.assertNotIn(stall, profiled)

    def test_a_filter_by_user(self):
        pid = self.start({})
        self.assertIn(pid, self.follow("--include", "user:%d" % os.getuid()).labels(harness.PROCESS_ID))
        self.assertNotIn(pid, self.follow("--exclude", "user:%d" % os.getuid()).labels(harness.PROCESS_ID))

    def test_what_starts_later_is_judged_by_what_it_becomes(self):
        """The shell is excluded; the program that it turns into is not."""
        path = self.path("late.pb.gz")
        profiler = subprocess.Popen([self.binary, "-g", "-d", "4", "--include", "name:split", "-O", path], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True, env=self.environment())
        harness.wait_for(lambda: has_events(self.binary), 20, "the profiler to open its events")
        subprocess.run(["sh", "-c", "%s 1 2 & wait" % self.puppet("split")], check=True, stdout=subprocess.DEVNULL)
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
        names = recording.labels(harness.PROCESS_NAME)  # other tests start the same program beside this one, under ddprof
        self.assertIn("split", names)
        self.assertNotIn("sh", names)
        self.assertGreater(recording.count("spend_70"), 0)

    def test_past_the_number_of_processes_the_rest_is_one_frame(self):
        started = {self.start({}) for _ in range(3)}
        recording = self.follow("--maximum-pids", "1")
        # Others may come first, and leave their place when they end; of those that stay only one can have it.
        known = {s.labels.get(harness.PROCESS_ID) for s in recording.samples()}
        self.assertLessEqual(len(known & started), 1, known)
        beyond = recording.cpu_ns(lambda s: pprof.find_frame(s, "[too many processes") is not None)
        self.assertGreater(beyond, recording.cpu_ns() / 4)
        self.assertRegex(recording.stderr, r"too many +[\d,]+ samples \([\d.]+ s of CPU\) of processes beyond --maximum-pids have no stacks")

    def test_what_cannot_be_meant_is_said_in_one_line(self):
        for condition in ("redis", "nam:x", "name:", "user:no such user", "container:redis", "name:/(/"):
            with self.subTest(condition):
                result = self.ddprof("-g", "--exclude", condition, "-d", "1")
                self.assertNotEqual(result.returncode, 0)
                self.assert_one_clear_line(result.stderr, "--exclude")
        result = self.ddprof("record", "--include", "name:x", "--", "true")
        self.assertNotEqual(result.returncode, 0)
        self.assert_one_clear_line(result.stderr, "--include", "-g")

    def test_the_profiler_sees_itself_unless_it_is_excluded(self):
        def has_itself(recording):
            return "ddprof" in recording.labels(harness.PROCESS_NAME)

        # At a high rate there is something to see, and its own samples are counted, not unwound without end.
        self.assertTrue(has_itself(self.follow("-F", "4999", seconds=3)))
        self.assertFalse(has_itself(self.follow("-F", "4999", "--exclude", "name:ddprof", seconds=3)))

    def test_thousands_of_short_processes_leave_nothing_behind(self):
        """Every other program is a new file that is gone at once, as on a host that builds and tests; without a build id, by which
        its copies would be the same. Whatever else the host does meanwhile is left out."""
        subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", "/bin/true", self.path("bare")], check=True)
        script = "i=0; while :; do i=$((i+1)); cp bare run-$i; ./run-$i; /bin/true; rm run-$i; done"
        churn = subprocess.Popen(["sh", "-c", script], cwd=self.folder, stdout=subprocess.DEVNULL)
        self.addCleanup(churn.wait)
        self.addCleanup(churn.kill)
        out = self.path("churn")
        os.mkdir(out)
        chosen = ["--include=name:" + name for name in ("run-*", "true", "cp", "rm", "sh")]
        profiler = subprocess.Popen([self.binary, "-g", "-u", "1", *chosen, "-O", out + "/"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                    text=True, env=self.environment())
        self.addCleanup(profiler.kill)

        def measure_after(profiles):
            harness.wait_for(lambda: len(glob.glob(out + "/*")) >= profiles, 60, "%d profiles" % profiles)
            pids = harness.processes_of(self.binary)
            return resident_kib(pids), *threads_and_files(pids)

        early, late = measure_after(13), measure_after(30)
        profiler.send_signal(signal.SIGINT)
        _, stderr = profiler.communicate(timeout=harness.PATIENCE)
        self.assertEqual(profiler.returncode, 0, stderr)
        self.assertLess(late[0], early[0] + 8192, "KiB resident")
        self.assertLessEqual(late[1], early[1] + 1, "threads")
        self.assertLessEqual(late[2], early[2] + 16, "open files")


if __name__ == "__main__":
    unittest.main()
