"""Whatever is wrong, one line says the cause and the cure, and the target runs wherever that is possible."""

import os
import resource
import shutil
import struct
import subprocess
import unittest

import harness


class Options(harness.SystemTest):
    def assert_refused(self, arguments, *words):
        result = self.ddprof(*arguments)
        self.assertNotEqual(result.returncode, 0, arguments)
        self.assertLess(result.returncode, 126, "126 and more are the target's")
        self.assertGreater(result.returncode, 0, "died: %s" % result.stderr)
        self.assert_one_clear_line(result.stderr, *words)

    def test_an_unknown_option_is_answered_with_the_nearest_one(self):
        self.assert_refused(["--upload-perod", "10", "true"], "--upload-perod", "--upload-period")
        self.assert_refused(["record", "--frequenzy", "10", "true"], "--frequenzy", "--frequency")

    def test_an_unknown_event_is_answered_with_the_nearest_one(self):
        self.assert_refused(["record", "-e", "sCPPU", "true"], "sCPPU", "sCPU")
        self.assert_refused(["record", "-e", "hINTS", "true"], "hINTS", "hINST")

    def test_an_unknown_preset_is_named(self):
        self.assert_refused(["record", "--preset", "cpu_onyl", "true"], "cpu_onyl", "cpu_only")

    def test_a_wrapped_program_runs_whatever_its_settings(self):
        """One line says why it is not profiled. Where it is not known where the program begins, or what it may do, nothing runs."""
        program = ["sh", "-c", "echo ran; exit 7"]
        for arguments, words in ((["-e", "nonsense"], "event nonsense"), (["-F", "many"], "frequency"), (["--preset", "x"], "preset"), (["-U", "ftp://x"], "--url")):
            with self.subTest(arguments):
                result = self.ddprof(*arguments, *program)
                self.assertEqual((result.returncode, result.stdout), (7, "ran\n"))
                self.assert_one_clear_line(result.stderr, "^ddprof: running without profiling: .*" + words)
        result = self.ddprof(*program, env=dict(self.environment(), DD_PROFILING_NATIVE_EVENTS="nonsense"))
        self.assertEqual((result.returncode, result.stdout), (7, "ran\n"))
        for arguments in (["--no-such-option"], ["--drop-caps=perhaps"], ["-p", "1"]):
            result = self.ddprof(*arguments, *program)
            self.assertEqual((result.returncode, result.stdout), (2, ""))

    def test_numbers_that_make_no_sense_are_named(self):
        for arguments in (["-F", "0", "true"], ["-F", "many", "true"], ["-F", "-3", "true"], ["-d", "x", "-g"], ["-p", "x"], ["-p", "-5"],
                          ["--stack-sample-size", "99999999", "true"], ["--stack-sample-size", "13", "true"]):
            with self.subTest(arguments):
                self.assert_refused(["record", *arguments] if "true" in arguments else arguments, arguments[0].lstrip("-"))

    def test_contradictions_are_named(self):
        self.assert_refused(["-p", "1", "true"], "-p|pid", "program|command")
        self.assert_refused(["-p", "1", "-g"], "-p|pid", "-g|global")

    def test_nothing_to_do_is_said(self):
        result = self.ddprof()
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stdout + result.stderr, "(?i)command|program|usage")

    def test_allocations_of_a_program_that_runs_are_refused(self):
        for arguments in (["-e", "sALLOC"], ["--preset", "alloc_only"], ["--preset", "alloc_live_heap"]):
            self.assert_refused([*arguments, "-p", str(os.getpid())], "allocations of a program that runs already cannot be sampled", "start the program with ddprof")

    def test_a_rate_above_the_kernels_is_said(self):
        result = self.ddprof("record", "-F", "99999999", "-O", self.path("fast.pb.gz"), "--", self.puppet("cold_exit"), "code", "7")
        self.assertRegex(result.stderr, "(?i)perf_event_max_sample_rate|100000")

    def test_a_report_of_nothing_and_of_nonsense_is_refused(self):
        self.assert_refused(["report", self.path("no_such_file.pb.gz")], "no_such_file", "no such file")
        for name, content in (("empty", b""), ("text", b"hello, this is no profile\n"), ("gzip", b"\x1f\x8b\x08\x00garbage"), ("zeros", bytes(5000))):
            with open(self.path(name), "wb") as file:
                file.write(content)
            with self.subTest(name):
                self.assert_refused(["report", self.path(name)], name)


class Output(harness.SystemTest):
    def assert_target_ran_and_loss_was_said(self, result, *words):
        self.assertIn("ran", result.stdout, result.stderr)
        for word in words:
            self.assertRegex(result.stderr, "(?i)" + word)
        self.assertEqual(result.returncode, 7, "the exit status is the target's, profile or not")

    def assert_refused_unless_wrapped(self, output, *words, prefix=lambda command: command):
        """`record` has not begun, and says what to correct; a wrapped program runs in any case."""
        program = ["-O", output, "--", "sh", "-c", "echo ran; exit 7"]
        recorded = self.run_command(prefix([self.binary, "record", *program]))
        self.assertEqual((recorded.returncode, recorded.stdout), (2, ""), recorded.stderr)
        self.assert_one_clear_line(recorded.stderr, *words)
        wrapped = self.run_command(prefix([self.binary, *program]))
        self.assert_target_ran_and_loss_was_said(wrapped, "running without profiling", *words)
        self.assertEqual(len(wrapped.stderr.splitlines()), 1, wrapped.stderr)

    def test_a_folder_that_may_not_be_written(self):
        folder = self.path("locked")
        os.mkdir(folder, 0o755)
        if not harness.IS_ROOT:
            os.chmod(folder, 0o555)
        with harness.paranoid(2):
            for output in ("x.pb.gz", "new/"):
                self.assert_refused_unless_wrapped(os.path.join(folder, output), "locked", "permission denied", prefix=harness.unprivileged)

    def test_a_folder_that_does_not_exist(self):
        self.assert_refused_unless_wrapped(self.path("no/such/folder/x.pb.gz"), "no/such/folder", "no such file or directory")

    def test_attaching_is_refused_too(self):
        for output, words in ((self.path("x.html"), "html"), (self.path("no/such/x.pb.gz"), "no such file")):
            result = self.ddprof("-p", str(os.getpid()), "-d", "1", "-O", output)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assert_one_clear_line(result.stderr, words)

    def test_a_full_disk(self):
        if not harness.IS_ROOT:
            self.skipTest("needs root, to mount a small tmpfs")
        folder = self.path("full")
        os.mkdir(folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "ddprof_test", folder], stderr=subprocess.PIPE, text=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a tmpfs: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        with open(os.path.join(folder, "filler"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        path = os.path.join(folder, "x.pb.gz")
        result = self.ddprof("record", "-O", path, "--", "sh", "-c", "echo ran; exit 7")
        self.assert_target_ran_and_loss_was_said(result, "no space left")
        self.assertFalse(os.path.exists(path) and os.path.getsize(path) > 0, "half a profile was left behind")

    def test_an_extension_that_means_nothing(self):
        self.assert_refused_unless_wrapped(self.path("x.jpeg"), r"jpeg", r"\.pb\.gz")
        self.assert_refused_unless_wrapped(self.path("x.html"), r"html", r"\.folded")


class Limits(harness.SystemTest):
    def test_no_locked_memory_shrinks_the_rings_or_says_why_not(self):
        def no_locked_memory():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

        with harness.paranoid(2):
            recording = self.record([self.puppet("split"), "1", "0.5"], as_nobody=True, preexec_fn=no_locked_memory)
        self.assert_sampled(recording, 0.7 * 0.5 * 99, "spend_70")

    def test_several_profilers_of_one_user_share_the_locked_memory(self):
        command = harness.unprivileged([self.binary, "record", "-O", self.path("many_{}.pb.gz"), "--", self.puppet("split"), "1", "0.5"])
        with harness.paranoid(2):
            running = [subprocess.Popen([part.format(i) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                       for i in range(6)]
            for process in running:
                _, stderr = process.communicate(timeout=harness.PATIENCE)
                self.assertEqual(process.returncode, 0, stderr)


class HostileFiles(harness.SystemTest):
    """Modules of the target whose bytes lie. The loader does not read what the profiler reads, so the target runs."""

    def profile_with(self, change):
        path = self.path("hostile.so")
        shutil.copy2(self.puppet("plugin.so"), path)
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            change(data)
            file.seek(0)
            file.write(data)
        recording = self.record([self.puppet("dlopen_user"), path, "0.3"], ["-F", "499"])
        self.assert_sampled(recording, 0.3 * 499)
        return recording

    def test_section_headers_behind_the_end(self):
        self.profile_with(lambda data: struct.pack_into("<Q", data, 40, 1 << 60))

    def test_more_section_headers_than_bytes(self):
        self.profile_with(lambda data: struct.pack_into("<HHH", data, 58, 64, 0xFFFF, 0xFFFE))

    def test_unwind_information_of_noise(self):
        for section in (".eh_frame", ".eh_frame_hdr"):
            for byte in (0xFF, 0x80, 0x01):
                with self.subTest((section, byte)):
                    def overwrite(data):
                        offset, size = harness.section_range(self.puppet("plugin.so"), section)
                        data[offset + 4:offset + size] = bytes([byte]) * (size - 4)
                    self.profile_with(overwrite)

    def test_symbols_of_noise(self):
        def overwrite(data):
            offset, size = harness.section_range(self.puppet("plugin.so"), ".symtab")
            data[offset:offset + size] = b"\xff" * size
        self.profile_with(overwrite)


if __name__ == "__main__":
    unittest.main()
