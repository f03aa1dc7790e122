"""Files that another user has made, or only names: they are opened with that user's rights, below that user's root, and regular files
alone; what they say is believed about that user's code, and they cost others nothing."""

import contextlib
import os
import shutil
import subprocess
import time
import unittest

import harness
import neighbours
import pprof
from neighbours import HOSTILE, VICTIM

SOURCE = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline, noclone)) void %s(void) { for (int i = 0; i < 20000; ++i) sink += (unsigned long)i; }
int main(int argc, char** argv) {
  while (argc < 2) {
    for (int i = 0; i < 50; ++i) %s();
    usleep(100000);
  }
  const time_t end = time(0) + atoi(argv[1]);
  while (time(0) < end) %s();
  return 0;
}
"""


class HostilePaths(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        if not harness.IS_ROOT:
            raise unittest.SkipTest("becoming other users needs root")
        super().setUpClass()

    def place(self, name, uid=HOSTILE):
        """A folder of this user."""
        path = self.path(name)
        os.makedirs(path, exist_ok=True)
        os.chown(path, uid, uid)
        return path

    def build(self, folder, name, flags=(), uid=HOSTILE):
        """A program of this user that spends so many seconds in the function `name`, or a little of all time; compiled in that folder."""
        with open(os.path.join(folder, "program.c"), "w") as file:
            file.write(SOURCE % (name, name, name))
        subprocess.run(["gcc", "-O1", "-g", *flags, "program.c", "-o", "program"], cwd=folder, check=True)
        for entry in os.listdir(folder):
            os.chown(os.path.join(folder, entry), uid, uid)
        return os.path.join(folder, "program")

    def profile(self, *options, seconds=3, timeout=harness.PATIENCE):
        path = self.path("%d.pb.gz" % next(self.numbers))
        result = self.ddprof(*options, "-d", str(seconds), "-O", path, timeout=timeout)
        self.assertEqual(result.returncode, 0, result.stderr)
        return harness.Recording(result, path)

    def ways(self, pid, program):
        """The profile of the process as -p, -g and the wrapper of root see it; the last runs the program anew."""
        yield "-p", self.profile("-p", str(pid))
        yield "-g", self.profile("-g")
        yield "record", self.record(neighbours.as_user(HOSTILE, [program, "2"]))

    def names_of(self, recording, pid=None):
        return {name for sample in recording.samples() if pid is None or sample.labels.get(harness.PROCESS_ID) == pid
                for name in sample.stack}

    @contextlib.contextmanager
    def fifo_with_writer(self, path):
        """A FIFO that root alone may read, and a writer of root that waits for its reader in open(): with any reader it goes on, and ends."""
        os.mkfifo(path, 0o600)
        writer = subprocess.Popen(["sh", "-c", "echo secret >'%s'" % path])
        try:
            call = "/proc/%d/syscall" % writer.pid
            harness.wait_for(lambda: harness.read_text(call).startswith("257 "), 10, "the writer to wait in openat()")
            yield writer
        finally:
            writer.kill()
            writer.wait()

    def test_a_fifo_that_only_root_may_read_keeps_its_writer_waiting(self):
        for kind in ("dwo", "debuglink"):
            with self.subTest(kind):
                folder = self.place("fifo_" + kind)
                secret = self.path("secret_" + kind)
                os.mkdir(secret, 0o700)
                if kind == "dwo":
                    program = self.build(folder, "spin_fifo", ["-gsplit-dwarf", "-fdebug-prefix-map=%s=%s" % (folder, secret)])
                    (unit,) = [name for name in os.listdir(folder) if name.endswith(".dwo")]
                    os.unlink(os.path.join(folder, unit))
                    fifo = os.path.join(secret, unit)
                else:
                    program = self.build(folder, "spin_fifo")
                    subprocess.run("objcopy --only-keep-debug program x.debug && strip program && objcopy --add-gnu-debuglink=x.debug program && "
                                   "rm x.debug && ln -s '%s/x.debug' x.debug" % secret, shell=True, cwd=folder, check=True)
                    fifo = os.path.join(secret, "x.debug")
                with self.fifo_with_writer(fifo) as writer, neighbours.running(HOSTILE, [program, "100"]) as process:
                    for way, _ in self.ways(process.pid, program):
                        self.assertIsNone(writer.poll(), "%s: the writer has met a reader" % way)

    def test_a_debug_file_that_only_root_may_read_is_not_read(self):
        folder = self.place("private")
        secret = self.path("only_root")
        os.mkdir(secret, 0o700)
        program = self.build(folder, "spin_private")
        # The same function under another name, in debug information that only root may read.
        subprocess.run("objcopy --only-keep-debug --redefine-sym spin_private=spin_of_root program '%s/x.debug' && strip program && "
                       "cp '%s/x.debug' x.debug && objcopy --add-gnu-debuglink=x.debug program && rm x.debug && ln -s '%s/x.debug' x.debug" %
                       (secret, secret, secret), shell=True, cwd=folder, check=True)
        with neighbours.running(HOSTILE, [program, "100"]) as process:
            for way, recording in self.ways(process.pid, program):
                self.assertGreater(recording.count(), 0, way)
                self.assertNotIn("spin_of_root", self.names_of(recording), way)
        # What that user may read is read.
        os.chmod(secret, 0o755)
        with neighbours.running(HOSTILE, [program, "100"]) as process:
            self.assertIn("spin_of_root", self.names_of(self.profile("-p", str(process.pid))))

    def test_devices_and_files_of_the_kernel_are_not_opened(self):
        folder = self.place("devices")
        program = self.build(folder, "spin_devices", ["-gsplit-dwarf"])
        (unit,) = [name for name in os.listdir(folder) if name.endswith(".dwo")]
        for target in ("/dev/zero", "/proc/kcore", "/sys/kernel/notes"):
            with self.subTest(target):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, unit))
                os.symlink(target, os.path.join(folder, unit))
                with neighbours.running(HOSTILE, [program, "100"]) as process:
                    recording = self.profile("-p", str(process.pid), seconds=2)
                    self.assertIn("spin_devices", self.names_of(recording, process.pid))

    def test_a_name_does_not_lead_out_of_the_root_of_the_process(self):
        """Debug information beside the program's path in our root says nothing about a process that has another one."""
        root = self.path("jail")
        path = self.path("app")
        folder = root + path
        for place in (folder, path):
            os.makedirs(place)
        program = self.build(folder, "spin_jailed", ["-static"])
        subprocess.run("objcopy --only-keep-debug --redefine-sym spin_jailed=spin_outside program '%s/x.debug' && strip program && "
                       "cp '%s/x.debug' . && objcopy --add-gnu-debuglink=x.debug program && rm x.debug" % (path, path),
                       shell=True, cwd=folder, check=True)
        command = ["chroot", "--userspec=%d:%d" % (HOSTILE, HOSTILE), root, os.path.join(path, "program")]
        recording = self.record([*command, "2"])
        self.assertGreater(recording.count(), 0)
        self.assertNotIn("spin_outside", self.names_of(recording))
        # Below its own root it is found, by a path that is another one to us.
        shutil.move(os.path.join(path, "x.debug"), folder)
        with neighbours.running(0, [*command, "100"]) as process:
            harness.wait_for(lambda: os.readlink("/proc/%d/exe" % process.pid).endswith("app/program"), 10, "the program to start")
            self.assertIn("spin_outside", self.names_of(self.profile("-p", str(process.pid)), process.pid))

    def test_a_copied_build_id_names_nothing_of_another_user(self):
        """HOSTILE runs first, with the build id of VICTIM's and of root's service."""
        build_id = ["-Wl,--build-id=0x" + "1234567890" * 4]
        false = self.build(self.place("false"), "spin_false", build_id)
        right = self.build(self.place("right", VICTIM), "spin_right", build_id, uid=VICTIM)
        roots = self.build(self.place("roots", 0), "spin_roots", build_id, uid=0)
        for order in ((HOSTILE, VICTIM, 0), (HOSTILE, 0, VICTIM)):
            with self.subTest(order), contextlib.ExitStack() as stack:
                pids = {}
                for uid, program, name in sorted([(HOSTILE, false, "spin_false"), (VICTIM, right, "spin_right"), (0, roots, "spin_roots")],
                                                 key=lambda one: order.index(one[0])):
                    process = stack.enter_context(neighbours.running(uid, [program, "100"]))
                    pids[process.pid] = name
                recording = self.profile("-g", seconds=4)
                for pid, name in list(pids.items())[1:]:
                    names = self.names_of(recording, pid)
                    self.assertIn(name, names)
                    self.assertNotIn("spin_false", names)

    def hung_calls(self):
        """Threads of the profiler that wait for a file system that does not answer."""
        stacks = []
        for pid in harness.processes_of(self.binary):
            with contextlib.suppress(OSError):
                stacks += [harness.read_text("/proc/%d/task/%s/stack" % (pid, task)) for task in os.listdir("/proc/%d/task" % pid)]
        return sum("fuse" in stack for stack in stacks)

    def wait_until_no_more_calls_hang(self):
        harness.wait_for(self.hung_calls, 20, "the profiler to meet a mount that hangs")
        counts = []  # of the last three seconds
        def is_steady():
            counts.append((time.monotonic(), self.hung_calls()))
            while counts[0][0] < counts[-1][0] - 3:
                counts.pop(0)
            return counts[-1][0] - counts[0][0] > 2.9 and len({count for _, count in counts}) == 1
        harness.wait_for(is_steady, 40, "the profiler to give up")

    def test_twenty_hanging_mounts_cost_others_nothing(self):
        split = shutil.copy(self.puppet("split"), self.path("victims_split"))
        os.chown(split, VICTIM, VICTIM)
        source = self.path("programs")
        os.mkdir(source)
        self.build(source, "spin_hung", ["-static"])
        path = self.path("hung.pb.gz")
        profiler = None
        # Mounts go first: who waits for one that hangs cannot be ended before.
        with contextlib.ExitStack() as processes, contextlib.ExitStack() as mounts:
            places = [mounts.enter_context(neighbours.HangingMount(self.puppet("hanging_fs"), self.path("mount%d" % i), source, HOSTILE)) for i in range(20)]
            for place in places:
                process = processes.enter_context(neighbours.running(HOSTILE, [os.path.join(place.point, "program")]))
                harness.wait_for(lambda: os.readlink("/proc/%d/exe" % process.pid).endswith("/program"), 10, "the program to start")
            for place in places:
                place.hang()
            profiler = processes.enter_context(subprocess.Popen([self.binary, "-g", "-d", "30", "-O", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment()))
            processes.callback(profiler.kill)
            # The victim's files are opened after all that hang.
            self.wait_until_no_more_calls_hang()
            victim = processes.enter_context(neighbours.running(VICTIM, [split, "1", "30"]))
            harness.wait_for(lambda: os.path.exists(path), 60, "the profile")
            pid = victim.pid
        shares, total = neighbours.shares_of_split(pprof.read(path), pid)
        self.assertGreater(total, 0)
        self.assertGreater(sum(shares), 0.99, shares)

    def test_a_mount_that_hangs_later_has_given_all_that_is_needed(self):
        """Names are read long after a file was opened: what a user's program serves was copied by then."""
        source, folder = self.path("later"), self.path("later_profiles")
        os.mkdir(source)
        os.mkdir(folder)
        self.build(source, "spin_later", ["-static"])
        def profiles():
            return sorted(name for name in os.listdir(folder) if name.endswith(".pb.gz"))
        with contextlib.ExitStack() as processes, contextlib.ExitStack() as mounts:
            place = mounts.enter_context(neighbours.HangingMount(self.puppet("hanging_fs"), self.path("later_mount"), source, HOSTILE))
            hostile = processes.enter_context(neighbours.running(HOSTILE, [os.path.join(place.point, "program"), "100"]))
            profiler = processes.enter_context(subprocess.Popen([self.binary, "-p", str(hostile.pid), "--upload-period", "1", "-O", folder + "/"],
                                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment()))
            processes.callback(profiler.kill)
            harness.wait_for(profiles, 20, "the first profile")
            place.hang()
            count = len(profiles())
            harness.wait_for(lambda: len(profiles()) >= count + 3, 30, "profiles of a program on a mount that hangs")
            last = pprof.read(os.path.join(folder, profiles()[-1]))
        self.assertTrue(any("spin_later" in sample.stack for sample in last.samples))


if __name__ == "__main__":
    unittest.main()
