"""The wrapper becomes the target: same PID, same world around it, same end, whatever happens to the profiler."""

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import time
import unittest

import harness

SYS_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}[os.uname().machine]
SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1)


class Wrapper(harness.SystemTest):
    def wrapped(self, *command, **options):
        return self.ddprof("-O", self.path("wrapped.pb.gz"), *command, **options)

    def test_the_target_has_the_pid_that_was_started(self):
        result = self.run_command(["sh", "-c", 'echo $$; exec "%s" -S x /bin/sh -c "echo \\$\\$"' % self.binary])
        first, second = result.stdout.split()
        self.assertEqual(first, second)

    def test_a_pipe_ends_with_the_target(self):
        start = time.monotonic()
        self.run_command(["sh", "-c", '"%s" true | cat; "%s" true 2>&1 | cat' % (self.binary, self.binary)], timeout=harness.PATIENCE)
        self.assertLess(time.monotonic() - start, 5, "the profiler held the pipe open")

    def test_exit_codes_are_the_targets(self):
        for code in (0, 1, 7, 255):
            with self.subTest(code):
                self.assertEqual(self.wrapped(self.puppet("cold_exit"), "code", str(code)).returncode, code)

    def test_deaths_by_signal_are_the_targets(self):
        for number in SIGNALS:
            with self.subTest(number):
                result = self.wrapped(self.puppet("cold_exit"), "signal", str(int(number)))
                self.assertEqual(result.returncode, -number)

    def test_a_command_that_does_not_exist_is_127(self):
        for arguments in (["no-such-command-here"], ["./no/such/command"]):
            for mode in ([], ["record"]):
                result = self.ddprof(*mode, *arguments)
                self.assertEqual(result.returncode, 127, (mode, arguments))
                self.assert_one_clear_line(result.stderr, "no[-/]such", "no such")

    def test_a_command_that_is_not_executable_is_126(self):
        path = self.path("plain_file")
        with open(path, "w") as file:
            file.write("text\n")
        os.chmod(path, 0o644)
        for mode in ([], ["record"]):
            result = self.ddprof(*mode, path)
            self.assertEqual(result.returncode, 126, mode)
            self.assert_one_clear_line(result.stderr, "plain_file", "permission|not executable")

    def test_a_profile_is_written_after_the_target_ended(self):
        path = self.path("after.pb.gz")
        self.assertEqual(self.ddprof("-O", path, self.puppet("split"), "1", "0.5").returncode, 0)
        self.wait_until_profiler_ends()
        recording = harness.Recording(subprocess.CompletedProcess([], 0, "", ""), path)
        self.assert_sampled(recording, 0.7 * 0.5 * 99, "spend_70")

    def test_disabled_profiling_is_a_plain_exec(self):
        result = self.ddprof("--enable=false", self.puppet("cold_exit"), "code", "7")
        self.assertEqual((result.returncode, result.stderr), (7, ""))


def ignore_signals():
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    for hidden in (32, 33):  # those of the C library, which only the kernel's own call reaches
        ignore = (ctypes.c_ulong * 4)(signal.SIG_IGN)
        ctypes.CDLL(None).syscall(SYS_RT_SIGACTION, hidden, ctypes.byref(ignore), None, 8)


class World(harness.SystemTest):
    """What the target sees of the world, with the profiler against without."""

    def world(self, *prefix):
        def normal(text):
            return re.sub(r"(pipe|socket):\[\d+\]", r"\1", text)

        read_end, write_end = os.pipe()  # an inherited descriptor that must neither vanish nor multiply
        try:
            result = self.run_command([*prefix, self.puppet("checker"), "an argument", "-x", "--", "last"], pass_fds=[read_end, write_end],
                                      preexec_fn=ignore_signals,
                                      env={"PATH": os.environ["PATH"], "EMPTY": "", "ODD": 'a "quoted" = value'})
        finally:
            os.close(read_end)
            os.close(write_end)
        self.assertEqual(result.returncode, 0, result.stderr)
        world = json.loads(normal(result.stdout))
        if self.has_thread_sanitizer():  # whose thread takes the signals of the C library (32 and 33) out of those that were ignored
            world["status"] = [re.sub(r"(SigIgn:\t)(\w+)", lambda match: "%s%016x" % (match[1], int(match[2], 16) & ~0x180000000), line)
                               for line in world["status"]]
        world["env"] = sorted(variable for variable in world["env"] if not variable.startswith("_="))
        del world["pid"]
        return world

    @classmethod
    def has_thread_sanitizer(cls):
        with open(cls.binary, "rb") as file:
            return b"ThreadSanitizer" in file.read()

    def assert_same_world(self, world, expected):
        self.assertEqual(set(world), set(expected))
        for key in expected:
            with self.subTest(key):
                self.assertEqual(world[key], expected[key])

    def test_the_wrapper_changes_nothing(self):
        plain = self.world()
        self.assert_same_world(self.world(self.binary, "-O", self.path("world.pb.gz")), plain)
        self.assertFalse(plain["has_children"])

    def test_record_changes_nothing_but_the_parent(self):
        plain, recorded = self.world(), self.world(self.binary, "record", "-O", self.path("world.pb.gz"), "--")
        for world in (plain, recorded):
            del world["ppid"]
        self.assert_same_world(recorded, plain)

    def test_a_blocked_signal_stays_blocked(self):
        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM])

        plain = self.run_command([self.puppet("checker")], preexec_fn=block)
        wrapped = self.ddprof(self.puppet("checker"), preexec_fn=block)
        self.assertEqual(json.loads(wrapped.stdout)["signals"], json.loads(plain.stdout)["signals"])
        self.assertIn([signal.SIGUSR1, "default", 1], json.loads(plain.stdout)["signals"])


class Trouble(harness.SystemTest):
    def start_long_target(self, *options):
        """A wrapped target that runs until its input is closed. Returns when it runs."""
        process = subprocess.Popen([self.binary, *options, self.puppet("many_threads"), "2"], stdin=subprocess.PIPE, cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.kill)
        return process, json.loads(process.stdout.readline())

    def test_killing_the_profiler_leaves_the_target_running(self):
        process, _ = self.start_long_target("-O", self.path("killed.pb.gz"))
        profilers = harness.wait_for(lambda: harness.processes_of(self.binary), 10, "a profiler process")
        self.assertNotIn(process.pid, profilers, "the wrapper became the target")
        while harness.processes_of(self.binary):
            for profiler in harness.processes_of(self.binary):
                os.kill(profiler, signal.SIGKILL)
        self.assertIsNone(process.poll(), "the target died with its profiler")
        process.communicate()
        self.assertEqual(process.returncode, 0)

    def test_ctrl_c_goes_to_the_target_and_the_profile_is_kept(self):
        path = self.path("interrupted.pb.gz")
        process, target = self.start_long_target("record", "-O", path, "--")
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=harness.PATIENCE)
        self.assertIn(process.returncode, (-signal.SIGINT, 128 + signal.SIGINT), stderr)
        self.assertFalse(os.path.exists("/proc/%d" % target["pid"]))
        self.assertTrue(os.path.exists(path), stderr)
        self.assertRegex(stderr, "samples")

    def test_record_exits_as_the_target_did(self):
        for code in (0, 7, 255):
            result = self.ddprof("record", "-O", self.path("code.pb.gz"), "--", self.puppet("cold_exit"), "code", str(code))
            self.assertEqual(result.returncode, code)
        for number in SIGNALS:
            result = self.ddprof("record", "-O", self.path("code.pb.gz"), "--", self.puppet("cold_exit"), "signal", str(int(number)))
            self.assertIn(result.returncode, (-number, 128 + number))

    def assert_unprofiled(self, command, *words):
        for mode in ([], ["record"]):
            result = self.run_command([*command, self.binary, *mode, "-O", self.path("refused.pb.gz"), self.puppet("cold_exit"), "code", "7"])
            self.assertEqual(result.returncode, 7, result.stderr)
            self.assert_one_clear_line(result.stderr, *words)

    def test_a_seccomp_filter_leaves_the_target_unprofiled(self):
        self.assert_unprofiled([self.puppet("deny_perf")], "perf_event_open|perf events", "seccomp")

    def test_a_refusing_kernel_leaves_the_target_unprofiled(self):
        with harness.paranoid(3):
            if unprivileged_may_open_events():
                self.skipTest("this kernel treats perf_event_paranoid 3 as 2 (the refusal is a Debian and Android patch)")
            self.assert_unprofiled(harness.unprivileged([]), "paranoid")

    def test_a_target_without_descriptors_left_still_runs(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))

        result = self.ddprof("-O", self.path("few.pb.gz"), self.puppet("cold_exit"), "code", "7", preexec_fn=few_descriptors)
        self.assertEqual(result.returncode, 7, result.stderr)


def unprivileged_may_open_events():
    """perf_event_open of a software event of its own, in a child without privileges."""
    child = os.fork()
    if child == 0:
        if harness.IS_ROOT:
            os.setgroups([])
            os.setgid(harness.NOBODY)
            os.setuid(harness.NOBODY)
        # type software, size 128, task-clock, flags: disabled and exclude_kernel
        attributes = (ctypes.c_uint64 * 16)(1 | 128 << 32, 1, 0, 0, 0, 1 | 1 << 5)
        syscall = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
        os._exit(0 if ctypes.CDLL(None).syscall(syscall, attributes, 0, -1, -1, 0) >= 0 else 1)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    unittest.main()
