"""What system tests share: where the binary and the puppets are, how to run them, with and without privileges."""

import contextlib
import functools
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import pprof

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "tests", "hostile"))
BINARY = os.path.abspath(os.environ.get("DDPROF_BINARY") or os.path.join(REPOSITORY, "build", "release", "ddprof"))
PUPPETS = os.path.abspath(os.environ.get("DDPROF_PUPPETS") or os.path.join(REPOSITORY, "build", "dev", "puppets"))
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
CPU, COUNT = "cpu/nanoseconds", "samples/count"
PATIENCE = 300  # seconds: what has not ended by then hangs. A machine that is busy otherwise takes ten times as long as an idle one.
THREAD_ID, THREAD_NAME, PROCESS_ID, PROCESS_NAME = "thread id", "thread name", "pid", "process name"


def read_text(path):
    with open(path) as file:
        return file.read()


def unprivileged(command, user=NOBODY):
    """The command as a user without any privilege; as it is when the tests themselves have none."""
    if not IS_ROOT:
        return command
    return ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups", "--inh-caps=-all", "--"] + command


def wait_for(condition, seconds, what):
    """Polls for a state of another process that announces itself in no other way. A busy machine has ten times as long."""
    end = time.monotonic() + 10 * seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("waited %d s in vain for %s" % (10 * seconds, what))


def processes_of(executable):
    """PIDs of all processes that run this file, by identity and not by name."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink("/proc/%s/exe" % entry) == executable:
                found.append(int(entry))
    return found


def descriptors_of(pid):
    """What the descriptors of a process name: files, pipes, sockets."""
    names = set()
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                names.add(os.readlink("/proc/%d/fd/%s" % (pid, entry)))
    return names


def section_range(path, name):
    """Where a section of an ELF file lies in it: offset and size."""
    text = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        parts = line.replace("[ ", "[").split()
        if len(parts) > 5 and parts[1] == name:
            return int(parts[4], 16), int(parts[5], 16)
    raise AssertionError("no %s in %s" % (name, path))


class Recording:
    """One finished run of the profiler: exit status, texts, and the profile that it left."""

    def __init__(self, result, path):
        self.status, self.stdout, self.stderr, self.path = result.returncode, result.stdout, result.stderr, path
        self._profile = None

    @property
    def profile(self):
        if self._profile is None:
            self._profile = pprof.read(self.path)
        return self._profile

    def samples(self):
        """Samples with a stack: those without stand for CPU time that no sample caught."""
        return [s for s in self.profile.samples if not pprof.find_frame(s, pprof.ACCOUNTED)]

    def count(self, function=None):
        return sum(s.values[self.profile.types.index(COUNT)] for s in self.samples() if function is None or self.has(s, function))

    def cpu_ns(self, where=lambda sample: True):
        return pprof.total(self.profile, CPU, where)

    @staticmethod
    def has(sample, function):
        """Whether the stack holds the function: its plain name, or the end of a qualified one."""
        return any(name == function or re.search(r"(^|[:.])%s\b" % re.escape(function), name) for name in sample.stack)

    def missed(self):
        """The share of CPU time that no sample stands for: a machine that is busy with other tests may have no time to take or read them."""
        return self.cpu_ns(lambda sample: pprof.find_frame(sample, pprof.ACCOUNTED)) / max(self.cpu_ns(), 1)

    def labels(self, key):
        return {s.labels.get(key) for s in self.profile.samples}


class SystemTest(unittest.TestCase):
    """Each class has a folder that any user may read and write, with its own copy of the binary in it. The copy makes the
    profiler's processes recognisable, and reachable for users who may not enter the build folder."""

    maxDiff = None
    numbers = itertools.count()

    @classmethod
    def setUpClass(cls):
        if not os.access(BINARY, os.X_OK):
            raise AssertionError("no ddprof at %s: run make build, or set DDPROF_BINARY" % BINARY)
        cls.folder = tempfile.mkdtemp(prefix="ddprof_test_")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        os.chmod(cls.folder, 0o777)
        cls.binary = os.path.join(cls.folder, "ddprof")
        shutil.copy2(BINARY, cls.binary)
        os.chmod(cls.binary, 0o755)

    @classmethod
    def puppet(cls, name):
        source, copy = os.path.join(PUPPETS, name), os.path.join(cls.folder, "puppets", name)
        if not os.path.exists(source):
            raise unittest.SkipTest("no puppet %s: its compiler was not found when the tests were built" % name)
        if not os.path.exists(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(source, copy)
        return copy

    @classmethod
    def environment(cls):
        """Profiles without a place of their own and kept names stay in the folder, and so do the findings of sanitizers, which
        a profiler in the background could not show otherwise. An agent on this machine is none of our business. The
        thread that checks a place may still be ending when `record` forks, which tsan allows only if it is told to."""
        log = "log_path=" + os.path.join(cls.folder, "sanitizer")
        return dict(os.environ, XDG_STATE_HOME=os.path.join(cls.folder, "state"), XDG_CACHE_HOME=cls.folder, DD_PROFILING_FIND_AGENT="false", ASAN_OPTIONS=log, TSAN_OPTIONS=log + ":die_after_fork=0", UBSAN_OPTIONS=log + ":print_stacktrace=1")

    def tearDown(self):
        for path in glob.glob(os.path.join(self.folder, "sanitizer.*")):
            finding = read_text(path)
            os.unlink(path)
            self.fail(finding)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def run_command(self, command, **options):
        options.setdefault("timeout", PATIENCE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.environment())
        options.setdefault("cwd", self.folder)
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def ddprof(self, *arguments, **options):
        return self.run_command([self.binary, *arguments], **options)

    def record(self, command, options=(), as_nobody=False, **run_options):
        """ddprof record of a command, which must end well and leave a profile."""
        path = self.path("%d.pb.gz" % next(self.numbers))
        line = [self.binary, "record", *options, "-O", path, "--", *command]
        result = self.run_command(unprivileged(line) if as_nobody else line, **run_options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(os.path.exists(path), "no profile was written\n" + result.stderr)
        return Recording(result, path)

    def wait_until_profiler_ends(self, seconds=20):
        wait_for(lambda: not processes_of(self.binary), seconds, "the end of the profiler")

    def assert_sampled(self, recording, nominal, function=None):
        """A timer that fires late takes one sample for several periods, and a busy host is often late: a fifth of the samples
        that an ideal timer would have taken says that sampling works. What must be exact are the values."""
        self.assertGreater(recording.count(function), nominal / 5, recording.stderr)

    def assert_one_clear_line(self, stderr, *words):
        """An error names its cause once; the cure may follow on a line of its own."""
        lines = [line for line in stderr.splitlines() if line.strip()]
        self.assertTrue(lines, "nothing was said")
        self.assertLessEqual(len(lines), 3, stderr)
        for word in words:
            self.assertRegex(stderr, re.compile(word, re.IGNORECASE))


@contextlib.contextmanager
def paranoid(level):
    """The kernel's setting for the time of one test. Skips where it cannot be had."""
    before = read_text(PARANOID).strip()
    if before == str(level):
        yield
        return
    try:
        with open(PARANOID, "w") as file:
            file.write(str(level))
    except OSError as error:
        raise unittest.SkipTest("kernel.perf_event_paranoid is %s, and %d cannot be set: %s" % (before, level, error))
    try:
        yield
    finally:
        with open(PARANOID, "w") as file:
            file.write(before)


def stolen():
    """Seconds that the hypervisor and interrupts took from all CPUs: the clock of an event runs meanwhile, what the kernel charges does not."""
    fields = read_text("/proc/stat").splitlines()[0].split()
    return sum(map(int, fields[6:9])) / os.sysconf("SC_CLK_TCK")


def tries(count):
    """For tests that measure: a machine that takes CPU time away at the wrong moment spoils a run; a real fault fails each time."""
    def decorate(function):
        @functools.wraps(function)
        def run(self, *arguments):
            for left in reversed(range(count)):
                try:
                    return function(self, *arguments)
                except AssertionError:
                    if left == 0:
                        raise
        return run
    return decorate


def needs_root(function):
    return unittest.skipUnless(IS_ROOT, "needs root, to compare privileged and unprivileged runs")(function)


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])
