"""Stacks reach their root, on the quick part of the matrix. tests/matrix.py without --quick is the whole of it."""

import os
import subprocess
import sys
import unittest

import harness


class Matrix(harness.SystemTest):
    # Two hundred samples of each, on a machine that may be busy, scatter: the bar is lower here than the goal of 99.5 %
    # that tests/matrix.py holds by default. Deep stacks are completed from live memory, which a busy machine reads too late: a program
    # below the bar is recorded again. Copies of stacks are as large as by default up to 250 Hz.
    def test_stacks_of_all_kinds_of_programs_reach_the_root(self):
        script = os.path.join(harness.REPOSITORY, "tests", "matrix.py")
        done = subprocess.run([sys.executable, "-B", script, "--quick", "--seconds", "1", "--threshold", "98.5", "--tries", "4", "--binary", harness.BINARY],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
        print(done.stdout)
        self.assertEqual(done.returncode, 0)

    @harness.tries(3)
    def test_of_more_frames_than_are_kept_both_ends_are(self):
        recording = self.record([self.puppet("deep"), "4200", "128", "1"])
        inside = [sample for sample in recording.samples() if recording.has(sample, "bottom")]
        whole = [sample for sample in inside if sample.stack[-1] == "_start" and "[truncated: too many frames]" in sample.stack[1000:-1000]]
        self.assertGreater(sum(sample.values[0] for sample in whole), 0.9 * sum(sample.values[0] for sample in inside), recording.stderr)
        self.assertGreater(len(whole), 0)
        self.assertRegex(recording.stderr, "too many frames")

    # 400 samples, of which those count whose frame was left before memory was read: on a busy machine some.
    @harness.tries(3)
    def test_frames_larger_than_the_copy_are_left(self):
        recording = self.record([self.puppet("large_frames"), "2"], ["-F", "199"])
        for name in ("burn_in_large_frame", "call_from_large_frame"):
            inside = [sample for sample in recording.samples() if recording.has(sample, name)]
            whole = [sample for sample in inside if sample.stack[-1] == "_start" and
                     (recording.has(sample, "first_caller") or recording.has(sample, "second_caller"))]
            self.assertGreater(sum(sample.values[0] for sample in whole), 0.8 * sum(sample.values[0] for sample in inside), recording.stderr)
            self.assertGreater(len(whole), 0)

    # Of code that changes, samples that were taken before a change and read after it are not unwound, rather than wrongly.
    @harness.tries(3)
    def test_generated_code_is_left_by_its_instructions(self):
        # Of code that changes, samples older than the change are cut: how many, the machine decides. Those that are whole are right.
        for arguments, share in ((["1"], 0.97), (["2", "changing"], 0.05)):
            recording = self.record([self.puppet("jit_frameless"), *arguments], ["-F", "199"])
            inside = [sample for sample in recording.samples() if any(name.startswith("[anonymous code]") or name == "called_back" for name in sample.stack)]
            whole = [sample for sample in inside if sample.stack[-1] == "_start"]
            self.assertGreater(sum(sample.values[0] for sample in whole), share * sum(sample.values[0] for sample in inside), recording.stderr)
            self.assertGreater(len(whole), 0)
            for sample in whole:
                self.assertTrue(recording.has(sample, "call_generated"), sample.stack)
            self.assertRegex(recording.stderr, r"unwinding +\d+ stacks through code without unwind information, by its instructions")


if __name__ == "__main__":
    unittest.main()
