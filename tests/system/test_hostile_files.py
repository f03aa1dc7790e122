"""Whatever files another user maps, they cost the profiler at most that user's own samples: no worker ends of them, they are named as
too large to read, and the service of a third user keeps its CPU time and its right names."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import unittest

import harness
import neighbours
import pprof

spec = importlib.util.spec_from_file_location("make_files", os.path.join(harness.REPOSITORY, "tests", "hostile", "make_files.py"))
make_files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_files)

READ_ALL = os.path.join(harness.REPOSITORY, "build", "release", "src", "session", "read_all")
MAPPED = [name for name in make_files.HOSTILE if name not in ("perf_map", "perf_map_of_names", "jit_dump")]
SECONDS = 4  # of CPU time of the service
MUTANTS = 150  # a hundred thousand of them once: read_all's own input


@unittest.skipUnless(harness.IS_ROOT, "other users need root")
class HostileFiles(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = cls.path("hostile")
        os.mkdir(cls.files)
        for name, make in make_files.HOSTILE.items():
            make(os.path.join(cls.files, name))

    def mapped(self):
        return [os.path.join(self.files, name) for name in MAPPED]

    @contextlib.contextmanager
    def hostile_process(self, *more):
        """A program of HOSTILE that runs code of every file, and of generated code with a perf map of 126 MiB."""
        with neighbours.running(neighbours.HOSTILE, [self.puppet("run_pages"), *self.mapped(), *more], stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            perf_map = "/tmp/perf-%d.map" % process.pid
            shutil.copyfile(os.path.join(self.files, "perf_map"), perf_map)
            os.chown(perf_map, neighbours.HOSTILE, neighbours.HOSTILE)
            try:
                yield process
            finally:
                os.unlink(perf_map)
                process.stdout.close()

    def assert_no_worker_ended(self, profile):
        self.assertFalse([comment for comment in profile.comments if comment.startswith("worker:")])
        self.assertEqual(pprof.total(profile, harness.CPU, lambda sample: pprof.find_frame(sample, "[lost: a worker")), 0)

    def assert_service_is_right(self, profile, pid, least=0.99):
        """Its CPU time, as far as samples can tell, and its names, without exception."""
        shares, total = neighbours.shares_of_split(profile, pid)
        self.assertGreater(total, least * SECONDS * 1e9)
        for share, expected in zip(shares, (0.7, 0.2, 0.1)):
            self.assertAlmostEqual(share, expected, delta=0.1)
        self.assertGreater(sum(shares), 0.97)  # what is left is its start

    def assert_files_are_named(self, text, *names):
        for name in names:
            self.assertRegex(text, r"%s: .*too (large|many) to read" % name)

    @harness.tries(3)
    def test_the_whole_host(self):
        path, log = self.path("host.pb.gz"), self.path("host.log")
        with self.hostile_process("-") as hostile, open(log, "w") as stderr:
            profiler = subprocess.Popen([self.binary, "-g", "-O", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=self.environment())
            self.addCleanup(profiler.kill)
            harness.wait_for(lambda: neighbours.cpu_ns(hostile.pid) and "perf_event" in "".join(map(str, map(harness.descriptors_of, harness.processes_of(self.binary)))),
                             20, "perf events")
            service = subprocess.Popen(neighbours.as_user(neighbours.VICTIM, [self.puppet("split"), "1", str(SECONDS)]), stdout=subprocess.DEVNULL)
            self.assertEqual(service.wait(timeout=90), 0)
            profiler.send_signal(signal.SIGINT)
            self.assertEqual(profiler.wait(timeout=60), 0, harness.read_text(log))
        profile = pprof.read(path)
        self.assert_no_worker_ended(profile)
        # Samples of CPUs, 100 in a second: three standard deviations of 400 are 15 %.
        self.assert_service_is_right(profile, service.pid, least=0.85)
        self.assert_files_are_named("\n".join(profile.comments) + harness.read_text(log), "many_segments", "many_sections", "large_eh_frame",
                                    "packed_debug_info", "sparse_symbols")
        self.assertIn("perf map: ", "\n".join(profile.comments))

    def test_attached_to_the_process_itself(self):
        path = self.path("attached.pb.gz")
        with self.hostile_process("-") as hostile:
            result = self.ddprof("-p", str(hostile.pid), "-d", "4", "-O", path, timeout=90)
        self.assertEqual(result.returncode, 0, result.stderr)
        profile = pprof.read(path)
        self.assert_no_worker_ended(profile)
        self.assert_files_are_named("\n".join(profile.comments) + result.stderr, "many_segments", "large_eh_frame")

    def test_a_wrapped_program_that_starts_both(self):
        path = self.path("wrapped.pb.gz")
        hostile = " ".join(neighbours.as_user(neighbours.HOSTILE, [self.puppet("run_pages"), *self.mapped()]))
        service = " ".join(neighbours.as_user(neighbours.VICTIM, [self.puppet("split"), "1", str(SECONDS)]))
        script = "%s >/dev/null & hostile=$!; %s & service=$!; echo $service; wait $service; kill $hostile" % (hostile, service)
        result = self.ddprof("-O", path, "sh", "-c", script, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        harness.wait_for(lambda: os.path.exists(path), 60, "the profile")
        self.wait_until_profiler_ends(60)
        profile = pprof.read(path)
        self.assert_no_worker_ended(profile)
        self.assert_service_is_right(profile, int(result.stdout.split()[0]))

    def test_every_parser_within_the_limits_of_a_worker(self):
        """Each of the hostile files, and real ones whose structure was changed."""
        paths = [os.path.join(self.files, name) for name in make_files.HOSTILE]
        sources = []
        for name in ("split", "plugin.so", "deep"):
            with open(os.path.join(harness.PUPPETS, name), "rb") as file:
                sources.append(file.read())
        for number, content in make_files.mutants(sources, int.from_bytes(os.urandom(3), "little"), MUTANTS):
            paths.append(self.path("mutant%d" % number))
            with open(paths[-1], "wb") as file:
                file.write(content)
        result = self.run_command([READ_ALL, "--seconds", "10"], stdin=None, input="\n".join(paths) + "\n", timeout=250)
        self.assertEqual(result.returncode, 0, "\n".join(line for line in result.stdout.splitlines() if "SLOW" in line or "OUT" in line or " s" not in line))
        self.assertEqual(len(result.stdout.splitlines()), len(paths))


if __name__ == "__main__":
    unittest.main()
