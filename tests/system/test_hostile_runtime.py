"""Neighbours who mean harm to the processes of the profiler: memory and files that hang, too little memory, programs that become
another user. Whatever they do costs the profiler at most their own samples, and the target nothing."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
import neighbours
import pprof

LEFT_BEHIND = "is left behind"
OTHER_USER = "[unsampled: became another user by set-user-ID exec]"


@unittest.skipUnless(harness.IS_ROOT, "needs root, to mount, and to be other users")
class HangingMemory(harness.SystemTest):
    """A process of HOSTILE with a deep stack, whose outer frames are on a mount that hangs; nobody but HOSTILE may enter it."""

    @contextlib.contextmanager
    def hanging_process(self, seconds):
        number = next(self.numbers)
        source, point = self.path("source%d" % number), self.path("mount%d" % number)
        os.makedirs(source)
        with open(os.path.join(source, "file"), "wb") as file:
            file.write(b"\0" * (1 << 20))
        with neighbours.HangingMount(self.puppet("hanging_fs"), point, source, neighbours.HOSTILE, is_private=True) as mount:
            with self.assertRaises(PermissionError):
                os.listdir(point)
            command = [self.puppet("hanging_stack"), os.path.join(point, "file"), str(seconds)]
            with neighbours.running(neighbours.HOSTILE, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
                try:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    mount.hang()
                    process.stdin.write("go\n")
                    self.assertEqual(process.stdout.readline(), "burning\n")
                    yield process
                finally:  # first the mount: it would hold up the end of a process with a file on it
                    mount.__exit__()
                    process.stdin.close()
                    process.stdout.close()

    def start_profiler(self, *options):
        path = self.path("%d.pb.gz" % next(self.numbers))
        process = subprocess.Popen([self.binary, *options, "-O", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=self.environment(), cwd=self.folder)
        self.addCleanup(process.kill)
        harness.wait_for(lambda: len(harness.processes_of(self.binary)) >= 2, 20, "a worker")
        return process, path

    @harness.tries(3)  # of the whole host totals are estimates, by timers that a busy machine delays
    def test_costs_its_owner_alone_and_the_profiler_ends_when_asked(self):
        with self.hanging_process(120) as hostile:
            profiler, path = self.start_profiler("-g", "-F", "199")
            with neighbours.running(neighbours.VICTIM, [self.puppet("split"), "1", "4"]) as victim:
                harness.wait_for(lambda: any(neighbours.waits_for_fuse(pid) for pid in harness.processes_of(self.binary)), 60, "a thread that hangs")
                harness.wait_for(lambda: neighbours.cpu_ns(victim.pid) > 0 or victim.poll() is not None, 10, "the victim")
                begun = neighbours.cpu_ns(victim.pid)
                victim_pid, status = victim.pid, victim.wait(60)
                self.assertEqual(status, 0)
            asked = time.monotonic()
            profiler.send_signal(signal.SIGTERM)
            _, stderr = profiler.communicate(timeout=harness.PATIENCE)
            self.assertLess(time.monotonic() - asked, 30, stderr)
            self.assertEqual(profiler.returncode, 0, stderr)
            self.assertEqual(stderr.count(LEFT_BEHIND), 1, stderr)
            self.assertNotIn("another one takes over", stderr)
            profile = pprof.read(path)
            shares, total = neighbours.shares_of_split(profile, victim_pid)
            self.assertGreater(total, 0.95 * 4e9 - begun, shares)
            for share, truth in zip(shares, (0.7, 0.2, 0.1)):
                self.assertAlmostEqual(share, truth, delta=0.05)
            hostile_total = pprof.total(profile, harness.CPU, lambda sample: sample.labels.get(harness.PROCESS_ID) == hostile.pid)
            self.assertGreater(hostile_total, 1e9)  # and even its own samples are there, if not its outer frames
        harness.wait_for(lambda: not harness.processes_of(self.binary), 20, "the worker that was left behind")

    def test_of_the_target_itself(self):
        with self.hanging_process(60) as hostile:
            profiler, path = self.start_profiler("-p", str(hostile.pid), "-d", "3")
            _, stderr = profiler.communicate(timeout=harness.PATIENCE)
            self.assertEqual(profiler.returncode, 0, stderr)
            recording = harness.Recording(subprocess.CompletedProcess([], 0, "", stderr), path)
            self.assertGreater(recording.count("bottom"), 10)
            self.assertEqual(hostile.poll(), None)


@unittest.skipUnless(harness.IS_ROOT, "needs root, to make groups and to be other users")
class OutOfMemory(harness.SystemTest):
    """Without a group of its own (as VICTIM, who can make none) the worker's memory counts in the group of the target."""
    HIERARCHY = "/sys/fs/cgroup/memory"
    LIMIT = 96 << 20

    # For every line that it reads, a little more: less than the worker has, whose end must make room for it.
    STEP = 128 << 10
    GROW = """
import sys
kept = []
for line in sys.stdin:
    kept.append(bytearray(b"x") * %d)
    print(len(kept), flush=True)
""" % STEP

    def setUp(self):
        own = [line.split(":", 2)[2] for line in harness.read_text("/proc/self/cgroup").splitlines() if line.split(":")[1] == "memory"]
        if not own or not os.path.isdir(self.HIERARCHY + own[0]):
            self.skipTest("needs a memory hierarchy of version 1 at " + self.HIERARCHY)
        self.group = "%s%s/test_%d" % (self.HIERARCHY, own[0], os.getpid())
        os.makedirs(self.group)
        self.addCleanup(self.remove_group)
        with open(self.group + "/memory.limit_in_bytes", "w") as file:
            file.write(str(self.LIMIT))

    def remove_group(self):
        def is_removed():
            with contextlib.suppress(OSError):
                os.rmdir(self.group)
            return not os.path.exists(self.group)
        harness.wait_for(is_removed, 20, "the end of all processes in " + self.group)

    def enter_group(self):
        with open(self.group + "/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))

    def test_takes_the_worker_and_not_the_target(self):
        folder = self.path("profiles")
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        command = [self.binary, "-u", "1", "-O", folder + "/", "python3", "-c", self.GROW]
        target = subprocess.Popen(neighbours.as_user(neighbours.VICTIM, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, preexec_fn=self.enter_group, env=self.environment())
        self.addCleanup(target.kill)
        harness.wait_for(lambda: len(harness.processes_of(self.binary)) == 2, 20, "supervisor and worker")
        for size in range(1, self.LIMIT // self.STEP):
            target.stdin.write("more\n")
            target.stdin.flush()
            self.assertEqual(target.stdout.readline(), "%d\n" % size, "the target was killed")
            if int(re.search(r"oom_kill (\d+)", harness.read_text(self.group + "/memory.oom_control")).group(1)) > 0:
                break
        else:
            self.fail("nothing ran out of memory")
        target.communicate(timeout=harness.PATIENCE)
        self.assertEqual(target.returncode, 0)
        self.wait_until_profiler_ends(60)

    def test_scores(self):
        with subprocess.Popen([self.binary, "-u", "1", self.puppet("split"), "1", "3"], env=self.environment(), cwd=self.folder,
                              stderr=subprocess.DEVNULL) as target:
            harness.wait_for(lambda: self.scores(harness.processes_of(self.binary)) == [900, 1000], 20, "supervisor and worker with their scores")
            self.assertEqual(self.scores([target.pid]), self.scores([os.getpid()]))
        self.wait_until_profiler_ends()

    @staticmethod
    def scores(pids):
        with contextlib.suppress(OSError):
            return sorted(int(harness.read_text("/proc/%d/oom_score_adj" % pid)) for pid in pids)


@unittest.skipUnless(harness.IS_ROOT, "needs root, to own files as other users")
class OtherUser(harness.SystemTest):
    """The kernel ends the events of a task that executes a set-user-ID program, also those of root."""

    def setUp(self):
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("no set-user-ID programs below " + self.folder)
        self.program = self.path("becomes_hostile")
        shutil.copy2(self.puppet("split"), self.program)
        os.chown(self.program, neighbours.HOSTILE, neighbours.HOSTILE)
        os.chmod(self.program, 0o4755)

    def of_program(self, recording, marker=None):
        return recording.cpu_ns(lambda sample: sample.labels.get(harness.PROCESS_NAME) == "becomes_hostile" and
                                (marker is None or marker in sample.stack))

    def test_is_named_where_it_cannot_be_sampled(self):
        recording = self.record(["sh", "-c", self.program + " 1 1.5; exit 0"], as_nobody=True)
        self.assertGreater(self.of_program(recording, OTHER_USER), 0.9 * 1.5e9, recording.stderr)
        self.assertIn("set-user-ID", recording.stderr)

    def test_is_named_when_the_target_itself_is_one(self):
        recording = self.record([self.program, "1", "1.5"], as_nobody=True)
        self.assertGreater(self.of_program(recording, OTHER_USER), 0.9 * 1.5e9, recording.stderr)

    def test_goes_on_with_privilege(self):
        recording = self.record(["sh", "-c", self.program + " 1 2; exit 0"])
        shares, total = neighbours.shares_of_split(recording.profile)
        self.assertGreater(total, 1.8e9, recording.stderr)
        self.assertAlmostEqual(shares[0], 0.7, delta=0.1)
        self.assertRegex(recording.stderr, "per CPU")

    def test_goes_on_when_the_target_itself_is_one(self):
        recording = self.record([self.program, "1", "2"])
        shares, _ = neighbours.shares_of_split(recording.profile)
        self.assertAlmostEqual(shares[0], 0.7, delta=0.1)

    def test_of_the_whole_host(self):
        with neighbours.running(neighbours.VICTIM, ["sh", "-c", "%s 1 3; exit 0" % self.program]):
            path = self.path("host.pb.gz")
            result = self.ddprof("-g", "-d", "2", "-O", path)
            self.assertEqual(result.returncode, 0, result.stderr)
        recording = harness.Recording(result, path)
        self.assertGreater(recording.count("spend_70"), 4)


class SupervisorKilled(harness.SystemTest):
    def test_leaves_a_line_in_the_log(self):
        log, profiles = self.path("log"), self.path("profiles")
        os.makedirs(profiles)
        target = subprocess.Popen([self.puppet("split"), "1", "600"])
        self.addCleanup(target.wait)
        self.addCleanup(target.kill)
        supervisor = subprocess.Popen([self.binary, "-p", str(target.pid), "-u", "1", "--log-mode", log, "-O", profiles + "/"],
                                      env=self.environment(), cwd=self.folder)
        self.addCleanup(supervisor.wait)
        self.addCleanup(supervisor.kill)
        harness.wait_for(lambda: os.listdir(profiles), 60, "a profile")
        supervisor.kill()
        harness.wait_for(lambda: not harness.processes_of(self.binary), 60, "the worker to end")
        self.assertIn("supervisor was killed", harness.read_text(log))
        self.assertIsNone(target.poll())


if __name__ == "__main__":
    unittest.main()
