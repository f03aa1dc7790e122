"""Programs that profile themselves by libddprof.so (include/ddprof.h): the examples, and what could go wrong."""

import email
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import agent
import harness
import neighbours
import pprof

LIBRARY = os.path.join(os.path.dirname(harness.PUPPETS), "libddprof.so")
EXAMPLES = os.path.join(harness.REPOSITORY, "examples", "api")
ALLOCATED, LIVE = "alloc_space/bytes", "inuse_space/bytes"
CPU_ONLY, CPU_AND_MEMORY, ENDED = 1, 3, 4

# What scripts begin with: the library by ctypes, and functions that need no words about types.
PRELUDE = """
import ctypes, os, sys, time, signal
class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(n, ctypes.c_char_p) for n in "service environment service_version tags preset event url output log_mode log_level".split()] + [
        (n, ctypes.c_uint32) for n in "upload_period cpu_duration frequency exit_timeout".split()] + [("program", ctypes.c_char_p), ("arguments", ctypes.POINTER(ctypes.c_char_p))]
api = ctypes.CDLL(%r)
api.ddprof_last_error.restype = ctypes.c_char_p
error = lambda: api.ddprof_last_error().decode()
def start(**options):
    return api.ddprof_start(ctypes.byref(Options(ctypes.sizeof(Options), **{k: v.encode() if isinstance(v, str) else v for k, v in options.items()})))
stop, flush, status = api.ddprof_stop, api.ddprof_flush, api.ddprof_status
set_label = lambda key, value: api.ddprof_label_set(key.encode(), value.encode())
clear_label = lambda key: api.ddprof_label_clear(key and key.encode())
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(1000))
folder = sys.argv[1] + "/"
""" % LIBRARY


def parse_parts(_, headers, body):
    """Of a request: its tags and its profiles."""
    message = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
    files = {part.get_filename(): part.get_payload(decode=True) for part in message.get_payload()}
    tags = json.loads(files.pop("event.json"))["tags_profiler"]
    return dict(tag.split(":", 1) for tag in tags.split(",")), [pprof.decode(agent.unpacked(raw)) for raw in files.values()]


class Api(harness.SystemTest):
    @classmethod
    def environment(cls):
        return dict(super().environment(), DD_PROFILING_NATIVE_DDPROF_EXE=cls.binary)

    def setUp(self):
        if not os.path.exists(LIBRARY):
            self.fail("no library at " + LIBRARY)

    def tearDown(self):
        self.wait_until_profiler_ends()
        super().tearDown()

    def script(self, text, by=(), env=None, **options):
        """The lines that it prints."""
        path = self.path("script%d.py" % next(self.numbers))
        with open(path, "w") as file:
            file.write(PRELUDE + text)
        result = self.run_command([*by, sys.executable, path, self.folder], env=env or self.environment(), **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout.splitlines()

    def example(self, name, *arguments):
        result = self.run_command([self.puppet(name), *arguments])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def of(self, profile, column, function):
        return pprof.total(profile, column, lambda sample: harness.Recording.has(sample, function))


class Examples(Api):
    def test_c(self):
        path = self.path("orders.pb.gz")
        self.assertIn("10000 orders", self.example("orders", path))
        profile = pprof.read(path)
        self.assertGreater(self.of(profile, harness.CPU, "main"), 0)
        # 40 MB; one standard deviation is 11 %.
        self.assertLess(abs(pprof.total(profile, LIVE) / 40.08e6 - 1), 0.6)
        self.assertEqual({sample.labels.get("customer") for sample in profile.samples} - {None}, {"odd", "even"} if harness.IS_ROOT else set())

    def test_cpp_sends_to_the_agent(self):
        receiver = agent.Agent(self, parse=parse_parts)
        self.assertIn("carts", self.example("shop", receiver.url, "4", "1"))
        self.assertEqual(receiver.problems, [])
        self.assertGreaterEqual(len(receiver.posts), 3)
        parts = {}
        for tags, profiles in receiver.posts:
            self.assertEqual([tags.get(key) for key in ("service", "env", "version", "team")], ["shop", "example", "1.2.3", "checkout"])
            self.assertGreater(len(profiles), 1)
            for profile in profiles:
                for name in profile.types:
                    parts[name] = parts.get(name, 0) + pprof.total(profile, name)
        for name in ("cpu-time/nanoseconds", ALLOCATED, LIVE):
            self.assertGreater(parts.get(name, 0), 0, parts)

    def test_rust(self):
        if not os.path.exists(os.path.join(harness.PUPPETS, "words")):
            raise unittest.SkipTest("rustc is not installed")
        path = self.path("words.pb.gz")
        self.assertIn("status 3\n18000 words", self.example("words", path))
        profile = pprof.read(path)
        self.assertGreater(self.of(profile, harness.CPU, "count_words"), 0)
        self.assertGreater(self.of(profile, LIVE, "keep"), 10e6)

    def test_python(self):
        path, script = self.path("primes.pb.gz"), os.path.join(EXAMPLES, "primes.py")
        for preload, expected in ((None, CPU_ONLY), (LIBRARY, CPU_AND_MEMORY)):
            env = dict(self.environment(), **({"LD_PRELOAD": preload} if preload else {}))
            result = self.run_command([sys.executable, script, LIBRARY, path], env=env)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("status %d" % expected, result.stdout)
            self.assertIn("500 259970 primes", result.stdout)
            self.assertEqual("do not pass libddprof.so" in result.stdout, not preload, result.stdout)
            profile = pprof.read(path)
            self.assertGreater(pprof.total(profile, harness.CPU), 0)
            self.assertEqual(LIVE in profile.types, bool(preload))
        self.assertGreater(pprof.total(profile, LIVE), 25e6)


class Packages(Api):
    """As installed: the library finds its program, and pkg-config and CMake find the library."""

    def installed(self):
        prefix = self.path("installed")
        if not os.path.exists(prefix):
            self.run_command([os.path.join(harness.REPOSITORY, "tools", "install.sh"), "install", prefix, harness.BINARY]).check_returncode()
        return prefix

    def assert_profiles_itself(self, program):
        environment = self.environment()
        del environment["DD_PROFILING_NATIVE_DDPROF_EXE"]
        path = self.path("packages%d.pb.gz" % next(self.numbers))
        result = self.run_command([program, path], env=dict(environment, LD_LIBRARY_PATH=os.path.join(self.installed(), "lib")))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertGreater(pprof.total(pprof.read(path), LIVE), 0)
        harness.wait_for(lambda: not harness.processes_of(os.path.join(self.installed(), "bin", "ddprof")), 20, "the end of the profiler")

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.installed(), "lib", "pkgconfig"))
        flags = self.run_command(["pkg-config", "--cflags", "--libs", "ddprof"], env=environment)
        flags.check_returncode()
        self.run_command(["cc", "-O2", os.path.join(EXAMPLES, "orders.c"), "-o", self.path("by_pkg_config"), *flags.stdout.split()]).check_returncode()
        self.assert_profiles_itself(self.path("by_pkg_config"))

    def test_cmake(self):
        project = self.path("project")
        os.makedirs(project)
        with open(os.path.join(project, "CMakeLists.txt"), "w") as file:
            file.write("""cmake_minimum_required(VERSION 3.13)
project(example LANGUAGES C)
find_package(ddprof 0.1 REQUIRED)
add_executable(by_cmake "%s/orders.c")
target_link_libraries(by_cmake PRIVATE ddprof::ddprof)
""" % EXAMPLES)
        self.run_command(["cmake", "-S", project, "-B", project, "-DCMAKE_PREFIX_PATH=" + self.installed()]).check_returncode()
        self.run_command(["cmake", "--build", project]).check_returncode()
        self.assert_profiles_itself(os.path.join(project, "by_cmake"))


class Sessions(Api):
    def test_two_hundred_sessions_under_load(self):
        result = self.run_command([self.puppet("api_cycles"), "200", "8", self.path("cycles.pb.gz")], timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "failures 0 without_memory 0 descriptors 0 mappings 0\n")
        self.assertGreater(pprof.total(pprof.read(self.path("cycles.pb.gz")), ALLOCATED), 0)

    def test_threads_that_start_and_stop_at_once_take_turns(self):
        lines = self.script("""
import threading
counts = {"started": 0, "stopped": 0}
def run(number):
    for turn in range(8):
        if start(output=folder + "turns.pb.gz", preset="cpu_live_heap") == 0: counts["started"] += 1
        status(), flush()
        if os.fork() == 0:  # while others have the lock
            os._exit(0 if status() == 0 and stop() == -1 else 1)
        if stop() == 0: counts["stopped"] += 1
threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
stop()
failed = 0
try:
    while True: failed += os.waitpid(-1, 0)[1] != 0
except ChildProcessError: pass
print(counts["started"] == counts["stopped"] > 0, failed, status())
""", env=dict(self.environment(), LD_PRELOAD=LIBRARY))
        self.assertEqual(lines, ["True 0 0"])

    def test_errors_are_said(self):
        lines = self.script("""
for what in (lambda: stop(), lambda: flush(), lambda: start(preset="nonsense"), lambda: start(program="/nowhere/ddprof"), lambda: start(program="/etc/passwd"),
             lambda: start(preset="alloc_only"), lambda: start(output="/nowhere/x.pb.gz"), lambda: api.ddprof_start(ctypes.byref(Options(0))),
             lambda: api.ddprof_start((ctypes.c_char * 400)(*(ctypes.sizeof(Options) + 8).to_bytes(8, "little"), *bytes(ctypes.sizeof(Options) - 8), 1))):
    print(what(), status(), error())
print(start(output=folder + "errors.pb.gz"), start(), error())
print(flush(), error())
print(stop(), status())
""")
        expected = ["no profiler was started", "no profiler runs", "must be one of", "cannot execute /nowhere/ddprof", "cannot execute /etc/passwd", "do not pass libddprof.so",
                    "/nowhere", "size is not set", "does not know"]
        for line, words in zip(lines, expected):
            self.assertTrue(line.startswith("-1 0 "), line)
            self.assertIn(words, line)
        self.assertEqual(lines[9:], ["0 -1 the profiler has been started already", "-1 there is one profile, of the whole run: it is written when profiling stops", "0 0"])

    def test_options_of_the_environment_and_more_of_them(self):
        env = dict(self.environment(), DD_SERVICE="by-environment", DD_PROFILING_NATIVE_PRESET="cpu_only")
        self.script("""
more = (ctypes.c_char_p * 3)(b"--frequency", b"499", None)
assert start(output=folder + "more.pb.gz", arguments=ctypes.cast(more, ctypes.POINTER(ctypes.c_char_p))) == 0, error()
burn(0.3)
assert stop() == 0, error()
""", env=env)
        profile = pprof.read(self.path("more.pb.gz"))
        self.assertIn("service: by-environment", profile.comments)
        self.assertAlmostEqual(profile.period, 1e9 / 499, delta=1e4)

    def test_a_flush_closes_the_period(self):
        os.makedirs(self.path("flushed"))
        lines = self.script("""
assert start(output=folder + "flushed/") == 0, error()
for _ in range(3):
    burn(0.2)
    assert flush() == 0, error()
    print(len([name for name in os.listdir(folder + "flushed") if name.endswith(".pb.gz")]))
burn(0.2)
assert stop() == 0, error()
""")
        self.assertEqual(lines, ["1", "2", "3"])
        files = sorted(name for name in os.listdir(self.path("flushed")) if name.endswith(".pb.gz"))
        profiles = [pprof.read(self.path("flushed/" + name)) for name in files]
        self.assertEqual(len(profiles), 4)
        for profile in profiles:
            self.assertGreater(pprof.total(profile, harness.CPU), 0.1e9)
        for before, after in zip(profiles, profiles[1:]):
            self.assertEqual(before.time_ns + before.duration_ns, after.time_ns)

    def test_the_program_has_no_child_and_no_signal(self):
        text = """
calls = []
signal.signal(signal.SIGCHLD, lambda *_: calls.append(1))
%s
for _ in range(3):
    assert start(output=folder + "child.pb.gz") == 0, error()
    for flags in (0, 0x40000000):
        try: print(os.waitpid(-1, os.WNOHANG | flags))
        except ChildProcessError: print("none")
    assert stop() == 0, error()
    try: print(os.waitpid(-1, os.WNOHANG | 0x40000000))
    except ChildProcessError: print("none")
print(calls)
"""
        self.assertEqual(self.script(text % ""), 9 * ["none"] + ["[]"])
        # Where orphans are adopted there is a process between, which waitpid() does not know without __WALL.
        expected = 3 * ["none", "(0, 0)", "none"] + ["[]"]
        self.assertEqual(self.script(text % "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0"), expected)
        if harness.IS_ROOT:
            self.assertEqual(self.script(text % "assert os.getpid() == 1", by=("unshare", "-pf", "--mount-proc")), expected)
            # Beside a file system that may hang the profiler has helpers, which it leaves behind.
            os.makedirs(self.path("source"), exist_ok=True)
            with neighbours.HangingMount(self.puppet("hanging_fs"), self.path("mount"), self.path("source")):
                self.assertEqual(self.script(text % "assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0"), expected)

    def test_one_descriptor_that_is_closed_on_exec(self):
        lines = self.script("""
names = lambda: sorted(set(os.listdir("/proc/self/fd")), key=int)
before = names()
assert start(output=folder + "descriptors.pb.gz") == 0, error()
more = [fd for fd in names() if fd not in before]
print(len(more), os.get_inheritable(int(more[0])))
assert stop() == 0, error()
print(names() == before)
""")
        self.assertEqual(lines, ["1 False", "True"])

    def test_a_descriptor_that_became_another_file_is_left_alone(self):
        lines = self.script("""
assert start(output=folder + "closed.pb.gz") == 0, error()
burn(0.1)
os.closerange(3, 65536)
file = os.open(folder + "precious", os.O_RDWR | os.O_CREAT)
for number in range(200, 210): os.dup2(file, number)
print(status(), stop(), status())
print(os.fstat(file).st_size, os.fstat(200).st_ino == os.fstat(file).st_ino)
assert start(output=folder + "closed_again.pb.gz") == 0, error()
assert stop() == 0, error()
""")
        self.assertEqual(lines[1], "0 True")
        self.assertEqual(lines[0].split()[0], str(ENDED))
        self.wait_until_profiler_ends()
        self.assertGreater(pprof.total(pprof.read(self.path("closed.pb.gz")), harness.CPU), 0)  # its end is a stop

    def test_a_child_is_not_profiled_until_it_starts_itself(self):
        lines = self.script("""
assert start(output=folder + "parent.pb.gz", preset="cpu_live_heap") == 0, error()
print(status())
sys.stdout.flush()
child = os.fork()
if child == 0:
    print(status(), stop())
    kept = [bytes(100000) for _ in range(500)]
    burn(0.3)
    assert start(output=folder + "child.pb.gz", preset="cpu_live_heap") == 0, error()
    print(status())
    more = [bytes(100000) for _ in range(500)]
    burn(0.3)
    assert stop() == 0, error()
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
burn(0.3)
print(status())
assert stop() == 0, error()
""", env=dict(self.environment(), LD_PRELOAD=LIBRARY))
        self.assertEqual(lines, ["3", "0 -1", "3", "3"])
        parent, child = (pprof.read(self.path(name + ".pb.gz")) for name in ("parent", "child"))
        self.assertLess(pprof.total(parent, ALLOCATED), 40e6)
        self.assertLess(pprof.total(parent, harness.CPU), 0.55e9)
        self.assertLess(abs(pprof.total(child, LIVE) / 50e6 - 1), 0.6)

    def test_a_profiler_that_dies_is_noticed_and_another_one_started(self):
        program = subprocess.Popen([sys.executable, "-c", PRELUDE + """
assert start(output=folder + "killed.pb.gz", preset="cpu_live_heap") == 0, error()
print("started", flush=True)
sys.stdin.readline()
kept = [bytes(100000) for _ in range(500)]
print(status(), status(), error())
assert start(output=folder + "killed.pb.gz", preset="cpu_live_heap") == 0, error()
print(status(), error(), stop(), flush=True)
""", self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(self.environment(), LD_PRELOAD=LIBRARY))
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "started\n")
        for pid in harness.processes_of(self.binary):
            os.kill(pid, signal.SIGKILL)
        self.wait_until_profiler_ends()
        out, _ = program.communicate("\n", timeout=harness.PATIENCE)
        self.assertEqual(program.returncode, 0)
        self.assertRegex(out, r"^4 4 the profiler('s supervisor was killed| has ended by itself).*\n3  0\n$")

    def test_the_end_of_the_program_is_the_end_of_the_session(self):
        for end in ("os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.execv('/bin/true', ['true'])"):
            with self.subTest(end):
                path = self.path("end%d.pb.gz" % next(self.numbers))
                result = self.run_command([sys.executable, "-c", PRELUDE + "assert start(output=%r) == 0, error()\nburn(0.3)\n%s" % (path, end), self.folder])
                self.assertIn(result.returncode, (0, -signal.SIGKILL), result.stderr)
                self.wait_until_profiler_ends()
                self.assertGreater(pprof.total(pprof.read(path), harness.CPU), 0.1e9)

    def test_a_program_under_ddprof_has_a_profiler_already(self):
        path = self.path("script%d.py" % next(self.numbers))
        with open(path, "w") as file:
            file.write(PRELUDE + "print(start(output=folder + 'second.pb.gz'), error())")
        recording = self.record([sys.executable, path, self.folder], ["--preset", "cpu_live_heap"])
        self.assertEqual(recording.stdout, "-1 the program runs under ddprof already\n")

    @harness.needs_root
    def test_a_program_with_borrowed_rights_starts_nothing(self):
        # Such a program takes its libraries from where it was linked to take them, which nobody has to be able to read.
        program, place = self.path("borrowed"), self.path("library")
        os.mkdir(place)
        shutil.copy2(LIBRARY, place)
        self.run_command(["cc", "-I", os.path.join(harness.REPOSITORY, "include"), os.path.join(harness.REPOSITORY, "examples", "api", "orders.c"), "-o", program,
                          "-L" + place, "-lddprof", "-Wl,-rpath," + place]).check_returncode()
        os.chmod(place, 0o755)
        os.chmod(program, 0o4755)
        result = self.run_command(harness.unprivileged([program, "/dev/null"]))
        self.assertIn("not profiled: a program with more rights than its user", result.stderr)
        self.assertIn("10000 orders", result.stdout)

    def test_a_linked_program_under_ddprof_is_counted_once(self):
        recording = self.record([self.puppet("orders"), self.path("third.pb.gz")], ["--preset", "cpu_live_heap"])
        self.assertIn("not profiled: the program runs under ddprof already", recording.stderr)
        self.assertLess(abs(pprof.total(recording.profile, LIVE) / 40.08e6 - 1), 0.6)


class Labels(Api):
    def test_labels_reach_samples_of_their_thread(self):
        if not harness.IS_ROOT:
            raise unittest.SkipTest("needs root: the kernel lets nobody else read thread contexts")
        self.script("""
import threading
def labelled(who):
    set_label("who", who)
    burn(0.5)
    set_label("who", who + "2")
    burn(0.5)
    clear_label("who")
    burn(0.3)
assert start(output=folder + "labels.pb.gz", frequency=499) == 0, error()
set_label("first", "x")  # the profiler looks for labels when there are samples
burn(0.5)
clear_label(None)
threads = [threading.Thread(target=labelled, args=(who,)) for who in ("a", "b")]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert stop() == 0, error()
""")
        by_thread = {}
        for sample in pprof.read(self.path("labels.pb.gz")).samples:
            by_thread.setdefault(sample.labels["thread id"], set()).add(sample.labels.get("who"))
        found = sorted(tuple(sorted(filter(None, labels))) for labels in by_thread.values() if labels - {None})
        self.assertEqual(found, [("a", "a2"), ("b", "b2")])

    def test_limits_of_labels(self):
        lines = self.script("""
print(set_label("", "x"), set_label("k" * 65, "x"), set_label("k", "x" * 256), error())
print([set_label("a%d" % i, "x" * 200) for i in range(4)], error())
clear_label(None)
print([set_label("b%d" % i, "x") for i in range(70)].count(0), error())
print(clear_label("never set"), clear_label("b1"))
import threading
def use(): assert set_label("a0", "y") == 0
for _ in range(2000):
    thread = threading.Thread(target=use); thread.start(); thread.join()
print(sum(1 for line in open("/proc/self/maps")) < 1000, "OTEL_CTX" in open("/proc/self/maps").read())
""")
        self.assertEqual(lines[0], "-1 -1 -1 labels: a key has 1 to 64 bytes and a value at most 255")
        self.assertEqual(lines[1], "[0, 0, 0, -1] labels: no room for a3")
        self.assertEqual(lines[2], "60 labels: too many different keys: b69")
        self.assertEqual(lines[3:], ["0 0", "True True"])

    def test_a_program_that_publishes_already_has_no_labels(self):
        lines = self.script("""
import mmap
fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
other = mmap.mmap(fd, 4096)
print(set_label("k", "v"), set_label("k", "v"), error())
""")
        self.assertEqual(lines, ["-1 -1 labels: another library publishes what the threads of this program do"])


if __name__ == "__main__":
    unittest.main()
