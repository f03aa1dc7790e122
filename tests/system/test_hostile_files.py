"""Whatever files another user maps, they cost the profiler at most that user's own samples: no worker ends of them, they are named as
too large to read, and the service of a third user keeps its CPU time and its right names."""

import contextlib
import os
import shutil
import signal
import subprocess
import unittest

import harness
import make_files
import neighbours
import pprof

READ_ALL = os.path.join(harness.REPOSITORY, "build", "release", "src", "session", "read_all")
MAPPED = [name for name in make_files.HOSTILE if name not in ("perf_map", "perf_map_of_names", "jit_dump")]
SECONDS = 4  # of CPU time of the service
# The puppet's stack is small, and rings with small copies hold more than a second: a busy machine alone loses nothing.
SMALL_COPIES = ("--stack-sample-size", "1024")
OFTEN = ("-F", "999", *SMALL_COPIES)
FOR_LONG = ("-F", "199", *SMALL_COPIES)  # while a worker ends and another starts
NOT_READ = "[truncated: unwind info was not read in %s]"
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
            os.chown(os.path.join(cls.files, name), neighbours.HOSTILE, neighbours.HOSTILE)

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

    def assert_service_is_right(self, profile, pid):
        """Its CPU time and its names, without exception."""
        shares, total = neighbours.shares_of_split(profile, pid)
        self.assertGreater(total, 0.99 * SECONDS * 1e9)
        for share, expected in zip(shares, (0.7, 0.2, 0.1)):
            self.assertAlmostEqual(share, expected, delta=0.1)
        self.assertGreater(sum(shares), 0.97)  # what is left is its start

    @contextlib.contextmanager
    def profiled_host(self, path, options=OFTEN):
        """The profiler of the whole host while the block runs; its messages are complete afterwards."""
        messages = []
        with open(self.path("host.log"), "w") as stderr:
            profiler = subprocess.Popen([self.binary, "-g", *options, "-O", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                                        env=self.environment())
            self.addCleanup(profiler.kill)
            harness.wait_for(lambda: "perf_event" in "".join(map(str, map(harness.descriptors_of, harness.processes_of(self.binary)))), 20, "perf events")
            yield messages
            profiler.send_signal(signal.SIGINT)
            self.assertEqual(profiler.wait(timeout=harness.PATIENCE), 0, harness.read_text(stderr.name))
        messages.append(harness.read_text(stderr.name))

    def run_service(self):
        """Returns its PID and the CPU time that the kernel has charged to it, from its first instruction on."""
        service = subprocess.Popen(neighbours.as_user(neighbours.VICTIM, [self.puppet("split"), "1", str(SECONDS)]), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(service.pid, 0)
        service.returncode = status
        self.assertEqual(status, 0)
        return service.pid, (usage.ru_utime + usage.ru_stime) * 1e9

    def assert_service_is_whole(self, profile, pid, cpu_ns):
        """Even if all that was lost on this machine had been its samples, it has 99 % of them; 99 % have the right names and whole
        stacks; and they stand for the CPU time that it had, as far as samples tell."""
        samples = [sample for sample in profile.samples if sample.labels.get(harness.PROCESS_ID) == pid]
        def count(where=lambda sample: True):
            return sum(sample.values[profile.types.index(harness.COUNT)] for sample in samples if where(sample))
        sampled, lost = count(), neighbours.lost_samples(profile)
        self.assertLessEqual(lost, 0.01 * (sampled + lost))
        self.assertGreaterEqual(count(neighbours.is_whole_stack_of_split), 0.99 * sampled)
        shares, total = neighbours.shares_of_split(profile, pid)
        # Three standard deviations, and a little for time slices that are in step with samples.
        self.assertAlmostEqual(total / cpu_ns, 1, delta=0.05 + 3 / sampled**0.5)
        for share, expected in zip(shares, (0.7, 0.2, 0.1)):
            self.assertAlmostEqual(share, expected, delta=0.05)

    def assert_files_are_named(self, text, *names):
        for name in names:
            self.assertRegex(text, r"%s: .*too (large|many) to read" % name)

    def assert_large_eh_frame_is_named(self, text):
        """It waits behind the user's other files, which a slow machine has not read at the end. Alone it is read: its marker's test."""
        self.assertRegex(text, r"large_eh_frame: unwind information: (too large to read|was not read in time)")

    @harness.tries(3)
    def test_the_whole_host(self):
        path = self.path("host.pb.gz")
        with self.hostile_process("-") as hostile, self.profiled_host(path) as messages:
            harness.wait_for(lambda: neighbours.cpu_ns(hostile.pid), 20, "the hostile process")
            service, cpu_ns = self.run_service()
        profile = pprof.read(path)
        self.assert_no_worker_ended(profile)
        self.assert_service_is_whole(profile, service, cpu_ns)
        text = "\n".join(profile.comments + messages)
        self.assert_files_are_named(text, "many_segments", "many_sections", "packed_debug_info", "sparse_symbols")
        self.assert_large_eh_frame_is_named(text)
        self.assertIn("perf map: ", "\n".join(profile.comments))

    @harness.tries(3)
    def test_unwind_information_that_is_too_large_has_a_marker(self):
        path = self.path("marker.pb.gz")
        command = [self.puppet("run_pages"), os.path.join(self.files, "large_eh_frame")]
        with neighbours.running(neighbours.HOSTILE, command) as hostile, self.profiled_host(path) as messages:
            service, cpu_ns = self.run_service()
        profile = pprof.read(path)
        self.assert_marked(profile, hostile.pid, "large_eh_frame")
        self.assert_files_are_named("\n".join(messages), "large_eh_frame")
        self.assert_service_is_whole(profile, service, cpu_ns)

    def assert_marked(self, profile, pid, name):
        """Stacks of this process end in the file of this name, with the marker that says why."""
        def cpu_ns(where):
            return pprof.total(profile, harness.CPU, lambda sample: sample.labels.get(harness.PROCESS_ID) == pid and where(sample))
        in_file = cpu_ns(lambda sample: any(mapping and os.path.basename(mapping.path) == name for mapping in sample.mappings))
        self.assertGreater(in_file, 1e9)
        self.assertGreater(cpu_ns(lambda sample: sample.stack[-1] == NOT_READ % name), 0.99 * in_file)

    @harness.tries(3)
    def test_a_file_that_a_worker_ended_of_is_left_alone_by_the_next(self):
        """The worker is killed in the middle of the file, which is an honest one: the next one could read it, and does not."""
        source, point, path = self.path("source"), self.path("mount"), self.path("suspect.pb.gz")
        shutil.rmtree(source, ignore_errors=True)
        os.mkdir(source)
        make_files.distant_eh_frame(os.path.join(source, "suspect"))
        os.chown(os.path.join(source, "suspect"), neighbours.HOSTILE, neighbours.HOSTILE)
        with neighbours.HangingMount(self.puppet("hanging_fs"), point, source) as mount:
            mount.hang(1 << 20)
            with neighbours.running(neighbours.HOSTILE, [self.puppet("run_pages"), os.path.join(point, "suspect")]) as hostile:
                with self.profiled_host(path, FOR_LONG) as messages:
                    worker = harness.wait_for(lambda: next(filter(neighbours.waits_for_page, harness.processes_of(self.binary)), None), 20, "a worker that waits")
                    os.kill(worker, signal.SIGKILL)
                    mount.go()
                    harness.wait_for(lambda: not os.path.exists("/proc/%d" % worker), 20, "its end")
                    service, cpu_ns = self.run_service()
        profile = pprof.read(path)
        self.assert_marked(profile, hostile.pid, "suspect")
        self.assertRegex("\n".join(messages), "suspect: .*left alone, because a worker of the profiler ended while it read it")
        self.assert_service_is_whole(profile, service, cpu_ns)

    @harness.tries(3)  # the machine may leave no time to read the files
    def test_attached_to_the_process_itself(self):
        path = self.path("attached.pb.gz")
        with self.hostile_process("-") as hostile:
            result = self.ddprof("-p", str(hostile.pid), "-d", "4", "-O", path, timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        profile = pprof.read(path)
        self.assert_no_worker_ended(profile)
        self.assert_files_are_named("\n".join(profile.comments) + result.stderr, "many_segments")
        self.assert_large_eh_frame_is_named(result.stderr)

    @harness.tries(3)  # of 4 s, 400 samples: what one process gets of the whole varies by 2 %
    def test_a_wrapped_program_that_starts_both(self):
        path = self.path("wrapped.pb.gz")
        hostile = " ".join(neighbours.as_user(neighbours.HOSTILE, [self.puppet("run_pages"), *self.mapped()]))
        service = " ".join(neighbours.as_user(neighbours.VICTIM, [self.puppet("split"), "1", str(SECONDS)]))
        script = "%s >/dev/null & hostile=$!; %s & service=$!; echo $service; wait $service; kill $hostile" % (hostile, service)
        result = self.ddprof("-O", path, "sh", "-c", script, timeout=harness.PATIENCE)
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
        result = self.run_command([READ_ALL, "--seconds", "10"], stdin=None, input="\n".join(paths) + "\n", timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 0, "\n".join(line for line in result.stdout.splitlines() if "SLOW" in line or "OUT" in line or " s" not in line))
        self.assertEqual(len(result.stdout.splitlines()), len(paths))


if __name__ == "__main__":
    unittest.main()
