"""32-bit programs."""

import errno
import math
import subprocess
import unittest

import harness

VARIANTS = ("i386_frame_pointers", "i386_tables")


class I386(harness.SystemTest):
    recordings = {}

    def recording(self, variant):
        if variant not in self.recordings:
            puppet = self.puppet(variant)
            try:
                subprocess.run([puppet, "0"], check=True)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                self.skipTest("this kernel runs no 32-bit programs (CONFIG_IA32_EMULATION)")
            self.recordings[variant] = self.record([puppet, "2"], ["-F", "499"])
        return self.recordings[variant]

    def test_functions_have_their_true_shares(self):
        for variant in VARIANTS:
            recording = self.recording(variant)
            self.assert_sampled(recording, 2 * 499)
            for function, share in (("spend_70", 0.7), ("spend_20", 0.2), ("spend_10", 0.1)):
                with self.subTest(variant=variant, function=function):
                    deviation = math.sqrt(share * (1 - share) / recording.count())
                    measured = recording.cpu_ns(lambda s: recording.has(s, function)) / recording.cpu_ns()
                    self.assertLess(abs(measured - share), 5 * deviation)

    def test_stacks_reach_the_root(self):
        for variant in VARIANTS:
            with self.subTest(variant):
                recording = self.recording(variant)
                self.assertIn(" 0 stacks truncated", recording.stderr)
                self.assertNotIn("no registers", recording.stderr)
                for sample in recording.samples():
                    # Samples of exec have frames of the kernel alone.
                    if recording.has(sample, "start"):
                        self.assertEqual(sample.stack[-2:], ["start", "_start"], sample.stack)
                self.assertGreater(recording.count("start"), 0.99 * recording.count())

    def test_leaves_have_names_and_lines(self):
        for variant in VARIANTS:
            with self.subTest(variant):
                recording = self.recording(variant)
                leaves = [s for s in recording.samples() if s.stack[0] == "burn_until"]
                self.assertGreater(len(leaves), 0)
                for sample in leaves:
                    self.assertRegex(sample.stack[1], "^spend_[0-9]+$")

    def test_the_kernel_is_entered_through_the_vdso(self):
        recording = self.recording("i386_tables")
        entering = [s for s in recording.samples() if "__kernel_vsyscall" in s.stack]
        if not entering:
            self.skipTest("no sample was taken in a system call, or the vdso has no such function")
        for sample in entering:
            position = sample.stack.index("__kernel_vsyscall")
            self.assertEqual(sample.stack[position + 1:position + 3], ["system_call", "thread_cpu_ns"], sample.stack)

    def test_instructions_are_those_of_i386(self):
        recording = self.recording("i386_frame_pointers")
        result = self.ddprof("report", "--annotate", "spend_70", recording.path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"push +ebp|mov +ebp, esp|imul +e")


if __name__ == "__main__":
    unittest.main()
