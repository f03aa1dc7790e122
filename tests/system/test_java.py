"""Java without frame pointers and without a perf map: the summary, the report and the doctor say what helps, and it does."""

import shutil
import subprocess
import unittest

import harness

# Calls that are not inlined, so that without frame pointers stacks are cut in them.
SOURCE = """
public class Busy {
  static long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
  public static void main(String[] arguments) {
    long sum = 0, end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000L;
    while (System.nanoTime() < end) sum += fibonacci(25);
    System.out.println("sum " + sum);
    try { if (arguments.length > 1) System.in.read(); } catch (java.io.IOException ignored) { }
  }
}
"""
KEEPS_FRAMES = "-XX:+PreserveFramePointer"
NAMES_AT_END = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]


@unittest.skipUnless(shutil.which("javac") and shutil.which("java"), "no JDK is installed")
class Java(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.path("Busy.java"), "w") as file:
            file.write(SOURCE)
        subprocess.run(["javac", "-d", cls.path("."), cls.path("Busy.java")], check=True)

    def java(self, *options):
        return ["java", *options, "-cp", self.path("."), "Busy"]

    def test_what_helps_is_said(self):
        recording = self.record(self.java() + ["3000"])
        self.assertRegex(recording.stderr, r"hint +process \d+ \(java\): \d+ % of stacks end in generated code.*-XX:\+PreserveFramePointer")
        self.assertRegex(recording.stderr, r"hint +process \d+ \(java\): generated code has no names.*jcmd \d+ Compiler\.perfmap")
        report = self.ddprof("report", "--no-pager", recording.path)
        self.assertIn(KEEPS_FRAMES, report.stdout)
        self.assertIn("Compiler.perfmap", report.stdout)

    def test_and_not_where_it_was_done(self):
        recording = self.record(self.java(KEEPS_FRAMES, *NAMES_AT_END) + ["3000"])
        self.assertNotIn("hint", recording.stderr)
        self.assertTrue(any("fibonacci" in name for sample in recording.samples() for name in sample.stack), recording.stderr)

    def test_the_doctor_names_one_that_runs(self):
        for options, is_cut in [([], True), ([KEEPS_FRAMES], False)]:
            child = subprocess.Popen(self.java(*options) + ["1", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                child.stdout.readline()
                findings = self.ddprof("doctor").stdout
            finally:
                child.communicate("")
            mine = "(java) keeps no frame pointers" in findings and "jcmd %d " % child.pid in findings
            others = "(java) keeps no frame pointers" in findings and not mine
            if not others:  # of this machine
                self.assertEqual(mine, is_cut, findings)


class Others(harness.SystemTest):
    def test_nothing_is_said_of_programs_without_generated_code(self):
        recording = self.record([self.puppet("split"), "1", "1"])
        self.assertNotIn("hint", recording.stderr)


if __name__ == "__main__":
    unittest.main()
