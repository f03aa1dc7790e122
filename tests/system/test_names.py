"""Names, lines and inlined calls agree with other tools, on some layouts of debug information. tests/names.py has all of them."""

import os
import subprocess
import sys
import unittest

import harness

ROWS = r"^(g\+\+, (DWARF 5|split|separate|dwz)|clang\+\+, DWARF 4|rustc|go, stripped)$"


class Names(unittest.TestCase):
    def test_every_sampled_address_is_named_as_the_judge_names_it(self):
        script = os.path.join(harness.REPOSITORY, "tests", "names.py")
        done = subprocess.run([sys.executable, "-B", script, "--only", ROWS, "--binary", harness.BINARY], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=280)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
