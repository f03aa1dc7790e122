"""Names, lines and inlined calls agree with other tools, on some layouts of debug information (tests/names.py has all of them), and of files that are larger than memory."""

import os
import subprocess
import sys
import tempfile
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


# Its debug information has strings that pack to their half: 24 MiB of them, more than may be held with --max-memory 32.
LARGE = r"""
#include <time.h>
__asm__(".section .debug_str,\"MS\",@progbits,1\n.incbin \"%s\"\n.byte 0\n.text");
static volatile unsigned long sink;
static inline void inlined_in_large(void) { for (int i = 0; i < 100000; ++i) sink += i * 2654435761UL; }
__attribute__((noinline)) static void work_in_large(void) { inlined_in_large(); __asm__ volatile(""); }
int main(void) { while ((double)clock() / CLOCKS_PER_SEC < 0.5) work_in_large(); }
"""


class LargeDebugInformation(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        noise, source = cls.path("noise"), cls.path("large.c")
        with open(noise, "w") as file:
            file.write(os.urandom(12 << 20).hex())
        with open(source, "w") as file:
            file.write(LARGE % noise)
        subprocess.run(["gcc", "-O2", "-g", "-gz=zlib", "-Wl,--build-id", "-o", cls.path("large"), source], check=True)

    def profile(self, cache):
        path = self.path("%s.pb.gz" % os.path.basename(cache))
        result = self.ddprof("record", "--max-memory", "32", "-F", "499", "-O", path, "--", self.path("large"),
                             env=dict(self.environment(), XDG_CACHE_HOME=cache))
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def test_is_unpacked_onto_the_disk(self):
        with tempfile.TemporaryDirectory(dir=os.path.join(harness.REPOSITORY, "build")) as cache:  # /tmp may be in memory
            recording = self.profile(cache)
            left = [name for folder, _, names in os.walk(cache) for name in names if name.startswith(".")]
            self.assertTrue(os.listdir(os.path.join(cache, "ddprof", "names")), "what was read of it is there for the next run")
        self.assert_sampled(recording, 0.5 * 499, "inlined_in_large")
        self.assertEqual(left, [], "what was unpacked is gone")

    def test_is_named_as_too_large_where_the_cache_is_in_memory(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as cache:
            recording = self.profile(cache)
        self.assert_sampled(recording, 0.5 * 499, "work_in_large")
        self.assertEqual(recording.count("inlined_in_large"), 0)
        self.assertIn("the cache folder is in memory", recording.stderr)


if __name__ == "__main__":
    unittest.main()
