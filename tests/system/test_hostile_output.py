"""What other users put where root's profiler writes and connects: links, FIFOs, indexes, locks, listeners; and disks that are full or hang."""

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import unittest

import agent
import harness
import neighbours
import pprof

PROGRAM = ["sh", "-c", "echo ran; exit 7"]
# In a network of its own: a listener of this user at the agent's port, then the command. Ends as that does; the listener says what it got.
BESIDE_A_LISTENER = """
import fcntl, http.server, os, socket, struct, subprocess, sys, threading
with socket.socket() as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        os.write(2, b"GOT A PROFILE\\n")
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
os.seteuid(int(sys.argv[1]))
server = http.server.HTTPServer(("127.0.0.1", 8126), Handler)
os.seteuid(0)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


@unittest.skipUnless(harness.IS_ROOT, "needs root, to be two users")
class HostileTest(harness.SystemTest):
    def fresh(self, mode=0o1777):
        folder = self.path("place%d" % next(self.numbers))
        os.mkdir(folder)
        os.chmod(folder, mode)
        return folder

    def plant(self, *command):
        subprocess.run(neighbours.as_user(neighbours.HOSTILE, command), check=True)

    def assert_profile(self, path):
        self.assertTrue(stat.S_ISREG(os.lstat(path).st_mode), path)
        self.assertEqual((os.lstat(path).st_uid, os.lstat(path).st_mode & 0o777), (0, 0o600))
        pprof.read(path)

    def run_program(self, *options, program=PROGRAM, **run_options):
        """A wrapped program runs as ever. What was said."""
        run_options.setdefault("timeout", 60)
        result = self.ddprof(*options, *program, **run_options)
        self.assertEqual((result.returncode, result.stdout), (7, "ran\n"), result.stderr)
        return result.stderr


class SharedFolder(HostileTest):
    """Where everybody may write, such as /tmp."""

    def record(self, path):
        result = self.ddprof("record", "-O", path, "--", *PROGRAM, timeout=harness.PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (7, "ran\n"), result.stderr)
        return result.stderr

    def test_a_planted_link_leads_nowhere(self):
        for target in ("/dev/null", self.path("precious")):
            with self.subTest(target), open(self.path("precious"), "w") as file:
                file.write("precious")
                path = os.path.join(self.fresh(), "out.pb.gz")
                self.plant("ln", "-s", target, path)
                self.record(path)
                self.assert_profile(path)
        self.assertEqual(harness.read_text(self.path("precious")), "precious")

    def test_a_planted_folder_link_is_refused(self):
        folder, elsewhere = self.fresh(), self.fresh(0o755)
        self.plant("ln", "-s", elsewhere, folder + "/link")
        for output in ("/link/out.pb.gz", "/link/"):
            result = self.ddprof("record", "-O", folder + output, "--", *PROGRAM)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assert_one_clear_line(result.stderr, "link is a link of user %d" % neighbours.HOSTILE)
            self.assertIn("running without profiling", self.run_program("-O", folder + output))
        self.assertEqual(os.listdir(elsewhere), [])

    def test_a_planted_fifo_holds_nothing_up(self):
        path = os.path.join(self.fresh(), "out.pb.gz")
        self.plant("mkfifo", "-m", "666", path)
        self.record(path)
        self.assert_profile(path)

    def test_a_fifo_that_nothing_reads_is_said(self):
        path = os.path.join(self.fresh(0o700), "out.pb.gz")
        os.mkfifo(path)
        self.assertIn("nothing reads this FIFO", self.record(path))

    def test_a_fifo_that_the_user_named_is_written_to(self):
        path, copy = os.path.join(self.fresh(0o700), "out.pb.gz"), self.path("copy.pb.gz")
        os.mkfifo(path)
        with open(copy, "wb") as output:
            reader = subprocess.Popen(["cat", path], stdout=output)
        self.addCleanup(reader.kill)
        self.record(path)
        self.assertEqual(reader.wait(20), 0)
        pprof.read(copy)
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))

    def test_a_planted_log(self):
        elsewhere = self.fresh(0o755)
        for plant in (["ln", "-s", elsewhere + "/log"], ["mkfifo", "-m", "666"], ["touch"]):
            with self.subTest(plant[0]):
                path = os.path.join(self.fresh(), "log")
                self.plant(*plant, path)
                said = self.run_program("-o", path, "-O", self.path("logged.pb.gz"))
                self.assertRegex(said, r"--log-mode: open %s: .*; the log goes to standard error" % path)
                self.assertEqual(os.listdir(elsewhere), [])
        self.wait_until_profiler_ends()

    def test_a_log_that_nothing_reads_lets_the_program_start(self):
        """Neither without a reader, nor with one that never reads."""
        path = os.path.join(self.fresh(0o700), "log")
        os.mkfifo(path)
        self.assertIn("--log-mode", self.run_program("-o", path, "-O", self.path("fifo.pb.gz")))
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, writer)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b"x" * 4096):
                pass
        self.assertIn("not in the log", self.run_program("-o", path, "-O", self.path("fifo.pb.gz")))
        self.wait_until_profiler_ends()


class Folder(HostileTest):
    def test_a_planted_index_removes_nothing(self):
        folder = self.fresh(0o777)
        theirs, huge = "shop-1-000000.pb.gz", 1 << 40
        subprocess.run(neighbours.as_user(neighbours.VICTIM, ["touch", os.path.join(folder, theirs)]), check=True)
        line = json.dumps({"file": theirs, "bytes": huge}, separators=(",", ":"))
        self.plant("sh", "-c", "echo '%s' > %s/index.jsonl" % (line, folder))
        self.run_program("-q", "-O", folder + "/")
        self.wait_until_profiler_ends()
        self.assertIn(theirs, os.listdir(folder))
        index = os.path.join(folder, "index.jsonl")
        self.assertEqual((os.stat(index).st_uid, os.stat(index).st_mode & 0o777), (0, 0o600))
        entry, = [json.loads(text) for text in harness.read_text(index).splitlines()]
        self.assert_profile(os.path.join(folder, entry["file"]))

    def test_an_index_that_is_a_fifo_or_a_link(self):
        for plant in (["mkfifo", "-m", "666"], ["ln", "-s", "/dev/null"]):
            folder = self.fresh()
            self.plant(*plant, folder + "/index.jsonl")
            self.run_program("-q", "-O", folder + "/")
            self.wait_until_profiler_ends()
            self.assertEqual(len(harness.read_text(folder + "/index.jsonl").splitlines()), 1)

    def test_no_other_user_can_take_the_lock(self):
        """The folder itself can be locked by all who can read it, so it is no lock of ours."""
        folder, log = self.fresh(0o755), self.path("lock.log")
        with neighbours.running(neighbours.HOSTILE, ["flock", folder, "sh", "-c", "echo locked; sleep 60"], stdout=subprocess.PIPE, start_new_session=True) as locker:
            self.assertEqual(locker.stdout.readline(), b"locked\n")
            target = subprocess.Popen([self.binary, "-o", log, "-l", "debug", "-u", "1", "-O", folder + "/", "sleep", "60"], env=self.environment())
            self.addCleanup(target.wait)
            self.addCleanup(target.kill)
            index = folder + "/index.jsonl"
            harness.wait_for(lambda: os.path.exists(index) and len(harness.read_text(index).splitlines()) > 1, 40, "two profiles")
            opened = subprocess.run(neighbours.as_user(neighbours.HOSTILE, ["flock", "-n", index, "true"]), stderr=subprocess.DEVNULL)
            self.assertNotEqual(opened.returncode, 0)
            locks = harness.read_text("/proc/locks")
            profilers = [str(pid) for pid in harness.processes_of(self.binary)]
            waiting = [line for line in locks.splitlines() if "->" in line and line.split()[5] in profilers]
            self.assertEqual(waiting, [])
            target.terminate()
            os.killpg(locker.pid, signal.SIGKILL)
        self.wait_until_profiler_ends()
        times = [entry["end"] for entry in map(json.loads, harness.read_text(index).splitlines())]
        self.assertEqual(times, sorted(times))

    def test_a_home_of_another_user(self):
        """With a link in it that leads to a folder of root."""
        home, elsewhere = self.fresh(0o755), self.fresh(0o755)
        os.chown(home, neighbours.HOSTILE, neighbours.HOSTILE)
        os.makedirs(elsewhere + "/state/ddprof")
        for path in (elsewhere + "/state", elsewhere + "/state/ddprof"):
            os.chmod(path, 0o755)
        self.plant("ln", "-s", elsewhere, home + "/.local")
        environment = {name: value for name, value in self.environment().items() if not name.startswith("XDG_")}
        said = self.run_program(env=dict(environment, HOME=home))
        self.assert_one_clear_line(said, "running without profiling", "link of user %d" % neighbours.HOSTILE)
        self.wait_until_profiler_ends()
        self.assertEqual(os.stat(elsewhere + "/state/ddprof").st_mode & 0o777, 0o755)
        self.assertEqual(os.listdir(elsewhere + "/state/ddprof"), [])
        os.unlink(home + "/.local")
        said = self.run_program(env=dict(environment, HOME=home))
        self.assert_one_clear_line(said, "running without profiling", "in a folder of user %d" % neighbours.HOSTILE)
        self.assertEqual(os.listdir(home), [])

    def test_two_places_get_their_profiles(self):
        path, prefix = self.path("both.pb.gz"), self.path("both")
        self.run_program("-q", "-O", path, "--debug-pprof-prefix", prefix)
        self.wait_until_profiler_ends()
        self.assert_profile(path)
        self.assertEqual(len([name for name in os.listdir(self.folder) if re.match(r"both-.*-000000\.pb\.gz", name)]), 1)


class Listener(HostileTest):
    """At port 8126, where an agent would be."""

    def beside(self, uid, *command):
        environment = {name: value for name, value in self.environment().items() if not name.startswith("DD_")}
        line = ["unshare", "--net", sys.executable, "-c", BESIDE_A_LISTENER, str(uid), self.binary, *command]
        if subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no network namespace to be had")
        return self.run_command(line, env=environment)

    def test_of_another_user_gets_nothing(self):
        result = self.beside(neighbours.HOSTILE, "-g", "-d", "1", "--maximum-pids", "0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("GOT A PROFILE", result.stderr)
        self.assertRegex(result.stderr, "http://localhost:8126: a process of user %d listens there, neither root's nor dd-agent's; .*--url http://localhost:8126\n" % neighbours.HOSTILE)

    def test_of_another_user_that_was_named(self):
        result = self.beside(neighbours.HOSTILE, "-g", "-d", "1", "--maximum-pids", "0", "--url", "http://localhost:8126")
        self.assertIn("GOT A PROFILE", result.stderr)

    def test_of_root_is_used(self):
        result = self.beside(0, "-g", "-d", "1", "--maximum-pids", "0")
        self.assertIn("GOT A PROFILE", result.stderr)

    def test_doctor_says_the_same(self):
        findings = json.loads(self.beside(neighbours.HOSTILE, "doctor", "--json").stdout)["findings"]
        finding, = [finding for finding in findings if finding["name"] == "agent"]
        self.assertEqual(finding["state"], "missing")
        self.assertIn("user %d" % neighbours.HOSTILE, finding["fact"])


class Terminal(HostileTest):
    def test_no_name_reaches_it_raw(self):
        """That of a program, in the summary, the answer, the list, the report and an error."""
        odd, folder = self.path("sp\x1b]0;owned\x07\x9blit"), self.path("list")
        os.link(self.puppet("split"), odd)
        path = self.path("odd.pb.gz")
        recorded = self.ddprof("record", "-O", path, "--", odd, "1", "1")
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        self.ddprof("-q", "-O", folder + "/", odd, "1", "0.3")
        self.wait_until_profiler_ends()
        texts = [recorded.stderr, self.ddprof("list", folder).stdout, self.ddprof("report", path).stdout, self.ddprof("report", odd).stderr,
                 self.ddprof("record", "-O", "/no/such\x1b[2J/x.pb.gz", "true").stderr, self.ddprof("\x1b[2J").stderr,
                 self.ddprof("record", "--show-samples", "-O", path, "--", odd, "1", "0.2").stdout]
        for text in texts:
            self.assertTrue(text)
            self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), repr(text))


class FullDisk(HostileTest):
    """A file system with no room: the program runs, one line says what is lost."""

    def full(self):
        point = self.fresh(0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", point], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", point])
        with open(point + "/filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        return point

    def test_of_profiles(self):
        point = self.full()
        for output in (point + "/out.pb.gz", point + "/"):
            log = self.path("full%d.log" % next(self.numbers))
            self.run_program("-o", log, "-O", output)
            self.wait_until_profiler_ends()
            self.assertRegex(harness.read_text(log), r"write %s\S*: No space left on device" % point)
            result = self.ddprof("record", "-O", output, "--", *PROGRAM)
            self.assertEqual((result.returncode, result.stdout), (7, "ran\n"))
            self.assertRegex(result.stderr, r"write %s\S*: No space left on device" % point)
        self.assertEqual([name for name in os.listdir(point) if name not in ("filler", "index.jsonl")], [], "nothing half is left")

    def test_of_the_state_folder(self):
        point, log = self.full(), self.path("full_state.log")
        self.run_program("-o", log, env=dict(self.environment(), XDG_STATE_HOME=point))
        self.wait_until_profiler_ends()
        self.assertRegex(harness.read_text(log), r"%s/ddprof/\S*: No space left on device" % point)

    def test_of_the_spool(self):
        point, log = self.full(), self.path("full_spool.log")
        self.run_program("-o", log, "-U", "http://127.0.0.1:1", "--spool-dir", point + "/spool")
        self.wait_until_profiler_ends(60)
        self.assertRegex(harness.read_text(log), r"%s/spool\S*: No space left on device; what cannot be delivered is lost" % point)

    def test_of_the_cache(self):
        point, path = self.full(), self.path("full_cache.pb.gz")
        self.run_program("-q", "-O", path, env=dict(self.environment(), XDG_CACHE_HOME=point))
        self.wait_until_profiler_ends()
        self.assert_profile(path)

    def test_of_the_log(self):
        point, path = self.full(), self.path("full_log.pb.gz")
        said = self.run_program("-o", point + "/log", "-O", path)
        self.assertRegex(said, r"ddprof: version .* \(not in the log: write %s/log: No space left on device\)" % point)
        self.wait_until_profiler_ends()
        self.assert_profile(path)


class HangingDisk(HostileTest):
    """A file system that does not answer, from the start or from some moment on."""

    def hanging(self):
        source = self.fresh(0o755)
        mount = neighbours.HangingMount(self.puppet("hanging_fs"), self.path("mount%d" % next(self.numbers)), source)
        self.addCleanup(self.wait_until_profiler_ends)
        self.addCleanup(mount.__exit__)
        return mount

    def hung(self):
        mount = self.hanging()
        mount.hang()
        return mount.point

    def test_of_profiles(self):
        point = self.hung()
        for output in (point + "/out.pb.gz", point + "/new/", point + "/"):
            said = self.run_program("-O", output)
            self.assert_one_clear_line(said, "running without profiling", r"%s\S*: the file system does not answer" % point)
        result = self.ddprof("record", "-O", point + "/", "--", *PROGRAM, timeout=harness.PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assert_one_clear_line(result.stderr, r"%s\S*: the file system does not answer" % point)
        result = self.ddprof("-p", str(os.getpid()), "-d", "1", "-O", point + "/out.pb.gz", timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 2)
        self.assert_one_clear_line(result.stderr, r"%s\S*: the file system does not answer" % point)

    def test_of_the_state_folder(self):
        environment = dict(self.environment(), XDG_STATE_HOME=self.hung())
        self.assert_one_clear_line(self.run_program(env=environment), "running without profiling", "ddprof: the file system does not answer")
        result = self.ddprof("-p", str(os.getpid()), "-d", "1", env=environment, timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 2)
        self.assert_one_clear_line(result.stderr, "the file system does not answer")

    def test_of_the_spool(self):
        point, receiver = self.hung(), agent.Agent(self)
        said = self.run_program("-U", receiver.url, "--spool-dir", point + "/spool")
        self.assertRegex(said, r"%s/spool\S*: the file system does not answer" % point)
        harness.wait_for(lambda: receiver.posts, 40, "the profile")
        result = self.ddprof("-p", str(os.getpid()), "-d", "1", "-U", receiver.url, "--spool-dir", point + "/spool", timeout=harness.PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "the file system does not answer")
        self.assertEqual(len(receiver.posts), 2)

    def test_of_the_cache(self):
        path = self.path("hung_cache.pb.gz")
        self.run_program("-q", "-O", path, env=dict(self.environment(), XDG_CACHE_HOME=self.hung()))
        harness.wait_for(lambda: os.path.exists(path), 60, "the profile")
        self.assert_profile(path)

    def test_of_the_log(self):
        point, path = self.hung(), self.path("hung_log.pb.gz")
        said = self.run_program("-o", point + "/log", "-O", path)
        self.assertRegex(said, r"^ddprof: --log-mode: open %s/log: the file system does not answer; the log goes to standard error" % point)
        harness.wait_for(lambda: os.path.exists(path), 60, "the profile")
        self.assert_profile(path)

    def test_from_the_middle_on(self):
        mount, log = self.hanging(), self.path("middle.log")
        target = subprocess.Popen([self.binary, "-o", log, "-O", mount.point + "/out.pb.gz", "sh", "-c", "echo started; read line; exit 7"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment(), text=True)
        self.assertEqual(target.stdout.readline(), "started\n")
        mount.hang()
        target.communicate("end\n")
        self.assertEqual(target.returncode, 7)
        words = r"write %s/out.pb.gz: the file system does not answer" % mount.point
        harness.wait_for(lambda: re.search(words, harness.read_text(log)), 60, "the line that says so")


if __name__ == "__main__":
    unittest.main()
