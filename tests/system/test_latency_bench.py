"""The measurements of latency under load run and answer, in seconds and with whatever figures: `make bench` is for those."""

import os
import re
import subprocess
import sys
import unittest

import harness

SECTIONS = ("headroom", "many", "bursts")


class LatencyBench(unittest.TestCase):
    def test_every_question_gets_rows_and_an_answer(self):
        build = os.path.dirname(harness.PUPPETS)
        command = [sys.executable, "-B", os.path.join(harness.REPOSITORY, "bench", "run.py"), "--quick", "--no-build"]
        for name in SECTIONS:
            command += ["--only", name]
        result = subprocess.run(command, env=dict(os.environ, DDPROF_BENCH_BUILD=build), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("failed", result.stderr)
        self.assertNotIn("could not be measured", result.stdout)
        for row in (r"latency at 50 % load, p99\.9 +x\d", r"4 of 4 under a ddprof each, mean latency of those +x\d", r"latency around the first export, max +x\d"):
            self.assertRegex(result.stdout, row)
        for answer in (r"Rule of thumb: profiling at 99 Hz adds \d+\.\d+ %", r"CPU per process with all 4", r"The added latency (comes in bursts|is spread evenly)"):
            self.assertTrue(re.search(answer, result.stdout), result.stdout)


if __name__ == "__main__":
    unittest.main()
