"""How things are measured: running commands with the kernel's account of them, reading other processes, summing up runs."""

import collections
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from harness import BINARY, processes_of, unprivileged, wait_for  # noqa: E402,F401

BUILD = os.path.abspath(os.environ.get("DDPROF_BENCH_BUILD") or os.path.join(ROOT, "build", "bench"))
MIB = 1 << 20

# cpu_s: what the kernel charged to the command and to every process that it waited for.
Finished = collections.namedtuple("Finished", "stdout stderr wall_s cpu_s")
Timed = collections.namedtuple("Timed", "finished wall_s target_cpu_s own_cpu_s")


class Bench:
    """What all measurements share: a folder that any user may enter, with copies of what runs in it. A copy of the profiler is
    recognisable among processes, and stays the same when somebody builds meanwhile."""

    def __init__(self, quick=False, long=False):
        self.quick, self.long = quick, long
        self.folder = tempfile.mkdtemp(prefix="ddprof_bench_")
        os.chmod(self.folder, 0o777)
        self.binary = self.copy(BINARY)
        self.timer = self.program("timed")
        os.environ["XDG_CACHE_HOME"] = self.path("cache")
        self.has_perf = shutil.which("perf") is not None

    def copy(self, path):
        copy = shutil.copy2(path, self.folder)
        os.chmod(copy, 0o755)
        return copy

    def program(self, name):
        """One of bench/programs."""
        return self.copy(os.path.join(BUILD, "bench_programs", name))

    def puppet(self, name):
        return self.copy(os.path.join(BUILD, "puppets", name))

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def ddprof_record(self, command, output="profile.pb.gz", frequency=99):
        return [self.binary, "record", "-F", str(frequency), "-O", self.path(output), "--", *command]

    def ddprof_wrapper(self, command, period=1):
        """The way of production, with its own process for the profiler."""
        profiles = self.path("profiles")
        os.makedirs(profiles, exist_ok=True)
        return [self.binary, "--upload-period", str(period), "-O", profiles + "/", *command]

    def perf_record(self, command, frequency=99):
        """Without the cache of build ids: it would copy every program of ours into the home folder."""
        return ["perf", "record", "--no-buildid-cache", "-o", self.path("perf.data"), "--call-graph", "dwarf", "-F", str(frequency), "--", *command]

    def start(self, command, is_service=False):
        """A service has a session of its own, and with it, on most machines, a share of the CPU."""
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=is_service)

    def run(self, command):
        """perf 6.1 aborts now and then while it collects build ids at its end ("stack smashing detected"): it may try again."""
        for _ in range(4 if command[0] == "perf" else 0):
            with contextlib.suppress(RuntimeError):
                return self.run_once(command)
        return self.run_once(command)

    def run_once(self, command):
        with open(self.path("stdout"), "w+") as out, open(self.path("stderr"), "w+") as err:
            begin = time.monotonic()
            child = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - begin
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            finished = Finished(out.read(), err.read(), wall, usage.ru_utime + usage.ru_stime)
        if child.returncode != 0:
            raise RuntimeError("%s ended with %d: %s" % (" ".join(command), child.returncode, finished.stderr))
        return finished

    def run_timed(self, profiler, target):
        """Runs the target under profiler(command), and tells the target's cost from the profiler's."""
        path = self.path("timed.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        finished = self.run(profiler([self.timer, path, *target]))
        with open(path) as file:
            account = json.load(file)
        target_s = account["target_ns"] / 1e9
        return Timed(finished, account["wall_ns"] / 1e9, target_s, finished.cpu_s - target_s - account["self_ns"] / 1e9)

    def profiler_pids(self):
        """Supervisor and worker. In the first milliseconds there are more that run its file, one of which becomes the target."""
        def both():
            found = processes_of(self.binary)
            return found if len(found) > 1 else None
        return wait_for(both, 10, "the profiler")

    def wait_for_profiler_to_end(self):
        wait_for(lambda: not processes_of(self.binary), 30, "the profiler's end")


def bare(command):
    return command


def process_cpu_ns(pid):
    """CPU time of another process, its ended threads included, to the nanosecond: the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def cpu_ns(pids):
    return sum(map(process_cpu_ns, pids))


def memory_kib(pids):
    """The sum over processes: pages that they share count for each. Empty where all have ended and were not waited for."""
    total = collections.Counter()
    for pid in pids:
        with open("/proc/%d/status" % pid) as file:
            total.update({key: int(value) for key, value in re.findall(r"^(Vm\w+|Rss\w+):\s+(\d+) kB", file.read(), re.M)})
    return total


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return list(map(int, file.read().split()))


def ddprof_counts(stderr):
    """(samples, lost) of ddprof's summary."""
    found = re.search(r"ddprof: ([\d,]+) samples, ([\d,]+) lost", stderr)
    if not found:
        raise RuntimeError("no summary in: " + stderr)
    return tuple(int(text.replace(",", "")) for text in found.groups())


def perf_samples(stderr):
    """perf names no number when there are none."""
    found = re.search(r"\((\d+) samples\)", stderr)
    return int(found.group(1)) if found else 0


def perf_lost(stderr):
    found = re.search(r"lost (\d+)", stderr)
    return int(found.group(1)) if found else 0


def spread(values, form="%.3f"):
    """The median, and the range when there are several."""
    text = form % statistics.median(values)
    return text if len(values) == 1 else "%s [%s–%s]" % (text, form % min(values), form % max(values))


def ratio(ours, peer):
    """Below one as a fraction, because the goals are."""
    return "1/%.1f" % (peer / ours) if ours < peer else "x%.1f" % (ours / peer)


def slope(points):
    """Least squares through (x, y)."""
    xs, ys = zip(*points)
    middle_x, middle_y = statistics.fmean(xs), statistics.fmean(ys)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / sum((x - middle_x) ** 2 for x in xs)
