"""A file system that hangs under what one process maps, names or publishes costs the samples of another process nothing, and every
command ends when it is asked to."""

import bisect
import contextlib
import os
import signal
import subprocess
import threading
import time
import unittest

import harness
import neighbours
import pprof
from neighbours import HOSTILE, VICTIM

SOURCE = """
#include <unistd.h>
int main(void) {
  for (;; usleep(200000)) for (volatile int n = 0; n < 1000000; ++n) {}
}
"""
# Rings then hold almost two seconds: a busy machine alone loses nothing, but a sampling thread that waits for all mounts of all users would.
OPTIONS = ("-F", "199", "--stack-sample-size", "1024", "--timeline", "--upload-period", "3")
USERS = range(HOSTILE + 100, HOSTILE + 106)
CPU_SECONDS = 2  # of the other process, after something hangs
LONGEST_HOLE_NS = 300e6  # of CPU time that no sample tells of
TIME_TO_END = 20  # of each command


class Clock:
    """What the kernel has charged to a process, at many moments."""

    def __init__(self, pid):
        self.readings = []  # (Unix time, CPU time), in nanoseconds
        self.path = "/proc/%d/schedstat" % pid
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.read)

    def read(self):
        with contextlib.suppress(OSError):
            while not self.is_over.wait(0.005):
                self.readings.append((time.time_ns(), int(harness.read_text(self.path).split()[0])))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def charged_within(self, begin, end):
        """At least."""
        first, last = bisect.bisect_left(self.readings, (begin,)), bisect.bisect_left(self.readings, (end,)) - 1
        return self.readings[last][1] - self.readings[first][1] if first < last else 0


@unittest.skipUnless(harness.IS_ROOT, "needs root, to mount, and to be other users")
class HangingFiles(harness.SystemTest):
    """Each case yields commands of processes that the profiler waits for. Mounts hang before they start, or when they have what they need."""

    late_mounts = ()

    def mount(self, stack, files, hang_from=0, point=None, user=HOSTILE):
        """A mount of this user with these files, which hangs from this offset of each file on, as a whole (0), or not yet (None)."""
        number = next(self.numbers)
        source = self.path("source%d" % number)
        os.mkdir(source)
        for name, content in files.items():
            with open(os.path.join(source, name), "wb") as file:
                file.write(content)
            os.chown(file.name, user, user)
            os.chmod(file.name, 0o755)
        mount = stack.enter_context(neighbours.HangingMount(self.puppet("hanging_fs"), point or self.path("mount%d" % number), source, user))
        if hang_from is not None:
            mount.hang(hang_from)
        return mount

    def program(self, folder):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "program")
        subprocess.run(["gcc", "-O1", "-g", "-static", "-x", "c", "-", "-o", path], input=SOURCE, text=True, check=True)
        return path

    def a_mapped_library(self, stack):
        """Two of each user, each on a mount of its own: the profiler waits 1.5 s for them. They can be run, but not read to their end."""
        with open(self.program(self.path("programs")), "rb") as file:
            content = file.read()
        end = (len(content) | 0xFFFFF) + 1
        for user in [*USERS, *USERS]:
            mount = self.mount(stack, {"program": content.ljust(end + (1 << 20), b"\0")}, hang_from=end, user=user)
            yield neighbours.as_user(user, [os.path.join(mount.point, "program")])

    def a_debug_file(self, stack):
        folder = self.path("stripped%d" % next(self.numbers))
        program = self.program(folder)
        subprocess.run(["objcopy", "--only-keep-debug", "program", "program.debug"], cwd=folder, check=True)
        subprocess.run(["objcopy", "--strip-all", "--add-gnu-debuglink=program.debug", "program"], cwd=folder, check=True)
        with open(os.path.join(folder, "program.debug"), "rb") as file:
            content = file.read()
        os.unlink(file.name)
        for path in (folder, program):
            os.chown(path, HOSTILE, HOSTILE)
        self.mount(stack, {"program.debug": content}, point=os.path.join(folder, ".debug"))
        yield neighbours.as_user(HOSTILE, [program])

    def a_jit_dump(self, stack):
        """Whose mapping is how it is found. The compiler has it when the mount hangs."""
        spins = b"\xb9\x40\x42\x0f\x00\xff\xc9\x75\xfc\xc3"
        mount = self.mount(stack, {"jit-1.dump": b"\0" * 4096 + spins.ljust(4096, b"\0")}, hang_from=None)
        self.late_mounts = [mount]
        yield neighbours.as_user(HOSTILE, [self.puppet("run_pages"), "-", os.path.join(mount.point, "jit-1.dump")])

    def a_perf_map(self, stack):
        """In the /tmp of a process with mounts of its own, which hangs as a whole."""
        mount = self.mount(stack, {"nothing": b""})
        program = self.puppet("run_pages")
        command = " ".join(neighbours.as_user(HOSTILE, ["/mnt/run_pages", "-"]))
        yield ["unshare", "--mount", "sh", "-c", "mount --bind '%s' /mnt && mount --bind '%s' /tmp && exec %s" % (os.path.dirname(program), mount.point, command)]

    def a_published_context(self, stack):
        mount = self.mount(stack, {"payload": b"\0" * 8192}, hang_from=1)
        yield neighbours.as_user(HOSTILE, [self.puppet("hanging_context"), os.path.join(mount.point, "payload")])

    CASES = (a_mapped_library, a_debug_file, a_jit_dump, a_perf_map, a_published_context)

    def profiler(self, stack, *arguments):
        process = stack.enter_context(subprocess.Popen([self.binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                       stderr=subprocess.DEVNULL, env=self.environment(), cwd=self.folder))
        stack.callback(process.kill)
        return process

    def assert_ends(self, process):
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TIME_TO_END)
        self.assertIsNotNone(process.poll(), "it goes on after SIGTERM")
        return time.monotonic() - asked

    def start(self, stack, *commands):
        """The last of them, when it runs and all mounts hang."""
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            stack.callback(process.kill)
        harness.wait_for(lambda: neighbours.cpu_ns(process.pid) > 0, 60, "a process that runs")
        self.hang_when_mapped(lambda: [process.pid])
        return process

    def hang_when_mapped(self, find_processes):
        for mount in self.late_mounts:
            harness.wait_for(lambda: any(mount.point in harness.read_text("/proc/%d/maps" % pid) for pid in find_processes()), 20, "its mapping")
            mount.hang()

    def samples_of(self, folder, pid):
        """Times and CPU time of the samples in all profiles of a folder, and how many of all processes were taken and lost."""
        samples, taken, lost = [], 0, 0
        for name in filter(lambda name: name.endswith(".pb.gz"), os.listdir(folder)):
            profile = pprof.read(os.path.join(folder, name))
            lost = max(lost, neighbours.lost_samples(profile))
            taken += pprof.total(profile, harness.COUNT)
            samples += [(sample.labels["end_timestamp_ns"], sample.values[profile.types.index(harness.CPU)])
                        for sample in profile.samples if sample.labels.get(harness.PROCESS_ID) == pid and "end_timestamp_ns" in sample.labels]
        return sorted(samples), taken, lost

    def check_another_process(self, case):
        self.late_mounts, folder = (), self.path("profiles%d" % next(self.numbers))
        os.mkdir(folder)
        # Mounts go first: who waits for one that hangs cannot be ended before.
        with contextlib.ExitStack() as processes, contextlib.ExitStack() as mounts:
            victim = self.start(processes, neighbours.as_user(VICTIM, [self.puppet("split"), "1", "1000"]))
            commands = list(case(self, mounts))
            if self.late_mounts:
                self.start(processes, *commands)
            profiler = self.profiler(processes, "-g", *OPTIONS, "-O", folder + "/")
            harness.wait_for(lambda: "perf_event" in "".join(map(str, map(harness.descriptors_of, harness.processes_of(self.binary)))), 20, "perf events")
            clock = processes.enter_context(Clock(victim.pid))
            if not self.late_mounts:
                self.start(processes, *commands)
            harness.wait_for(lambda: any(map(neighbours.waits_for_fuse, harness.processes_of(self.binary))), 30, "a thread that hangs")
            begun = clock.readings[-1][1]
            harness.wait_for(lambda: clock.readings[-1][1] > begun + CPU_SECONDS * 1e9, 60, "the other process")
            self.assert_ends(profiler)
        samples, taken, lost = self.samples_of(folder, victim.pid)
        self.assertLessEqual(lost, 0.005 * taken)  # a machine that is busy with something else may lose some
        self.assertGreater(len(samples), 100)
        times = [moment for moment, _ in samples]
        hole = max(clock.charged_within(begin, end) for begin, end in zip(times, times[1:]))
        print("%s: %d samples, at most %.0f ms of CPU time between two" % (case.__name__, len(samples), hole / 1e6))
        self.assertLess(hole, LONGEST_HOLE_NS)
        sampled, charged = sum(cpu for _, cpu in samples), clock.charged_within(times[0], times[-1])
        self.assertAlmostEqual(sampled / charged, 1, delta=0.1)

    def check_that_command_ends(self, case, way):
        with contextlib.ExitStack() as processes, contextlib.ExitStack() as mounts:
            command = next(case(self, mounts))
            path = self.path("%d.pb.gz" % next(self.numbers))
            if way == "record":
                profiler = self.profiler(processes, "record", "-O", path, "--", *command)
                self.hang_when_mapped(lambda: harness.processes_of(self.puppet("run_pages")))
            else:
                profiler = self.profiler(processes, way, str(self.start(processes, command).pid), "-O", path)
            harness.wait_for(lambda: len(harness.processes_of(self.binary)) >= 2, 20, "a worker")
            time.sleep(1.5)
            print("%s: %s ends after %.1f s" % (case.__name__, way, self.assert_ends(profiler)))
            self.assertTrue(os.path.exists(path))


def add_tests():
    for case in HangingFiles.CASES:
        setattr(HangingFiles, "test_%s_and_another_process" % case.__name__,
                harness.tries(3)(lambda self, case=case: self.check_another_process(case)))
        for way in ("record", "-p"):
            setattr(HangingFiles, "test_%s_and_the_end_of_%s" % (case.__name__, way.strip("-")),
                    lambda self, case=case, way=way: self.check_that_command_ends(case, way))


add_tests()

if __name__ == "__main__":
    unittest.main()
