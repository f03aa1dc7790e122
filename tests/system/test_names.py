"""Names, lines and inlined calls agree with other tools, on some layouts of debug information (tests/names.py has all of them), and of files that are larger than memory.
Functions of stripped programs are those that their unwind information tells."""

import bisect
import os
import re
import shutil
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
                              stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
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


STRIPPED = r"""
#include <pthread.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void divide(unsigned long n) { for (unsigned long i = 1; i < n; ++i) { sink += n / i; if (sink & 1) sink *= 3; } }
__attribute__((noinline)) static void multiply(unsigned long n) { for (unsigned long i = 1; i < n; ++i) { sink += n * i; if (sink & 2) sink -= 7; } }
static void* work(void* unused) {
  struct timespec now;
  do { divide(30000); multiply(60000); clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); } while (now.tv_nsec < 400000000 && now.tv_sec == 0);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  work(0);
  return pthread_join(thread, 0);
}
"""


def functions_of(path):
    """[(begin, end)] of a file, as readelf reads its .eh_frame."""
    text = subprocess.run(["readelf", "--debug-dump=frames", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return sorted((int(begin, 16), int(end, 16)) for begin, end in re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", text))


def addresses_of(path):
    """Turns offsets of a file into its addresses."""
    text = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    loads = [[int(number, 16) for number in line.split()[1:5]] for line in text.splitlines() if line.split()[:1] == ["LOAD"]]
    return lambda offset: next(offset - at + address for at, address, _, size in loads if at <= offset < at + size)


class StrippedPrograms(harness.SystemTest):
    def calls_in(self, recording, path):
        """{address in the file: name} of what was sampled of it."""
        address_of = addresses_of(path)
        return {address_of(location.address - location.mapping.start + location.mapping.offset): location.calls[-1].name
                for location in recording.profile.locations if location.mapping and location.mapping.path == path}

    def test_rows_of_gzip_are_its_functions(self):
        path = os.path.realpath(shutil.which("gzip"))
        if subprocess.run(["nm", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout:
            self.skipTest("gzip has symbols here")
        with open(self.path("data"), "wb") as file:
            for name in (harness.BINARY, sys.executable):
                with open(os.path.realpath(name), "rb") as part:
                    file.write(part.read(24 << 20))
        recording = self.record([path, "-9", "-k", self.path("data")], ["-F", "999"])
        calls = self.calls_in(recording, path)
        self.assertGreater(len(calls), 50, "addresses are kept")
        functions = functions_of(path)
        for address, name in calls.items():
            if name.endswith("@plt"):
                continue
            begin, end = functions[bisect.bisect_right(functions, (address, 1 << 64)) - 1]
            self.assertTrue(begin <= address < end, "%x is in no function: %s" % (address, name))
            if name not in ("main", "_start"):
                self.assertEqual(name, "gzip+0x%x" % begin)
        self.assertLess(len(set(calls.values())), 25)
        self.assertGreater(recording.count("main") / recording.count(), 0.9, "its name is known without symbols")
        self.assertTrue(all(mapping.build_id for mapping in recording.profile.mappings if mapping.path == path))
        self.assertRegex(recording.stderr, r"no names in \d+ \(.*gzip")
        self.assertIn("gzip, which has no symbols", " ".join(recording.stderr.split()))

        hottest = max((name for name in set(calls.values()) if name.startswith("gzip+")), key=list(calls.values()).count)
        begin = int(hottest.split("+")[1], 16)
        text = self.ddprof("report", "--annotate", hottest, recording.path).stdout
        listed = [int(number, 16) for number in re.findall(r"(?m)^ .* ([0-9a-f]{4,})  [a-z]", text.split("Assembly")[1])]
        self.assertTrue(listed and min(listed) >= begin and max(listed) < dict(functions)[begin], text)

    def test_all_formats_have_the_functions_of_a_stripped_program(self):
        with open(self.path("stripped.c"), "w") as file:
            file.write(STRIPPED)
        program = self.path("stripped")
        subprocess.run(["gcc", "-O1", "-pthread", "-o", program, self.path("stripped.c")], check=True)
        symbols = subprocess.run(["nm", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        begins = {name: int(begin, 16) for begin, name in re.findall(r"^([0-9a-f]+) [tT] (\w+)$", symbols, re.MULTILINE)}
        subprocess.run(["strip", program], check=True)
        recording = self.record([program], ["-F", "499"])
        wanted = {"stripped+0x%x" % begins[name]: name for name in ("divide", "multiply", "work")}
        calls = set(self.calls_in(recording, program).values())
        self.assertLessEqual(set(wanted), calls)
        self.assertLessEqual(calls, set(wanted) | {"main", "_start", "stripped+0x%x" % begins["_init"]} | {name for name in calls if name.endswith("@plt")})
        roots = {tuple(sample.stack[-3:]) for sample in recording.samples() if len(sample.stack) > 3}
        self.assertTrue([root for root in roots if "start_thread" in root], roots)
        self.assertTrue([root for root in roots if "__libc_start_call_main" in root], roots)
        for extension in ("folded", "speedscope.json", "firefox.json", "svg", "otlp"):
            path = self.path("out." + extension)
            self.assertEqual(self.ddprof("convert", recording.path, path).returncode, 0)
            with open(path, "rb") as file:
                data = file.read()
            for name in wanted:
                self.assertIn(name.encode(), data, extension)

    def test_generated_code_without_names_is_one_row_with_a_hint(self):
        recording = self.record([self.puppet("jit"), "0.5"], ["-F", "999"])
        generated = {location.address: location.calls[-1].name for location in recording.profile.locations
                     if location.mapping and location.mapping.path == "[anonymous code]"}
        start = next(mapping.start for mapping in recording.profile.mappings if mapping.path == "[anonymous code]")
        self.assertGreater(len(generated), 1, "the loop and the call")
        self.assertEqual(set(generated.values()), {"[anonymous code]+0x%x" % start})
        self.assertIn("/tmp/perf-PID.map", recording.stderr)


if __name__ == "__main__":
    unittest.main()
