"""Whatever happens to the profiler, a server under load beside it loses no request, gets no signal and ends as it would; and
profiles go on."""

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import unittest

import agent
import harness
import make_files
import pprof

WORKER_LOST = "[lost: a worker of the profiler ended]"


class Client(threading.Thread):
    """One request after the other, each answered with what it said, or it is lost."""

    def __init__(self, path):
        super().__init__()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rw", newline="\n")
        self.answered, self.lost, self.is_done, self.errand = 0, 0, threading.Event(), None

    def ask(self, word):
        self.stream.write(word + "\n")
        self.stream.flush()
        return self.stream.readline() == word + "\n"

    def run(self):
        while not self.is_done.is_set():
            word, self.errand = self.errand or "request %d" % self.answered, None
            if self.ask(word):
                self.answered += 1
            else:
                self.lost += 1
                return
            time.sleep(0.0002)


class Service:
    """The server under `ddprof`, with load on it and a profile every second."""

    def __init__(self, test, *options):
        number = next(test.numbers)
        self.test, self.path = test, test.path("socket%d" % number)
        self.profiles = test.path("profiles%d" % number)
        self.log = test.path("log%d" % number)
        os.makedirs(self.profiles)
        command = [test.binary, "-u", "1", "-F", "199", "--log-mode", self.log, *options]
        if "-O" not in options:
            command += ["-O", self.profiles + "/"]
        self.process = subprocess.Popen(command + [test.puppet("server"), self.path], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=test.environment())
        test.addCleanup(self.process.kill)
        test.assertEqual(self.process.stdout.readline(), "ready\n")
        self.client = Client(self.path)
        self.client.start()
        self.supervisor = harness.wait_for(self.find_supervisor, 10, "the supervisor")
        self.worker = self.wait_for_worker()

    def ours(self):
        return {pid: int(harness.read_text("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[1])
                for pid in harness.processes_of(self.test.binary)}

    def find_supervisor(self):
        with contextlib.suppress(OSError):
            processes = self.ours()
            return next((pid for pid, parent in processes.items() if parent not in processes), None)

    def wait_for_worker(self, after=None):
        def find():
            with contextlib.suppress(OSError):
                return next((pid for pid, parent in self.ours().items() if parent == self.supervisor and pid != after), None)
        return harness.wait_for(find, 30, "another worker")

    def files(self):
        return sorted(name for name in os.listdir(self.profiles) if name.endswith(".pb.gz"))

    def wait_for_profiles(self, more):
        def last():  # old ones are deleted
            return max((int(name.split("-")[-1].split(".")[0]) for name in self.files()), default=-1)
        goal = last() + more
        harness.wait_for(lambda: last() >= goal, 30, "%d more profiles" % more)

    def end(self):
        """Lets the server end, and judges what it went through. Returns its CPU time."""
        self.client.is_done.set()
        self.client.join()
        self.client.stream.write("quit\n")
        self.client.stream.close()
        self.client.socket.close()
        stdout, stderr = self.process.communicate(timeout=harness.PATIENCE)
        self.test.assertEqual(self.process.returncode, 42, stderr)
        answered, signals, seconds = re.fullmatch(r"(\d+) answered, (\d+) signals, ([\d.]+) s\n", stdout).groups()
        self.test.assertEqual((self.client.lost, int(answered), int(signals)), (0, self.client.answered, 0))
        self.test.assertGreater(self.client.answered, 100)
        harness.wait_for(lambda: not harness.processes_of(self.test.binary), 30, "the profiler to end")
        return float(seconds)

    def read_profiles(self):
        return [pprof.read(os.path.join(self.profiles, name)) for name in self.files()]


class Faults(harness.SystemTest):
    def assert_adds_up(self, profiles, seconds, least_sampled):
        """Every second of the target is in some profile, and most of it was sampled. On a machine that is too busy for a profile a
        second some are dropped; the next one says so."""
        total = sum(pprof.total(profile, harness.CPU) for profile in profiles) / 1e9
        self.assertLess(total, 1.02 * seconds + 0.02)
        if not any("were dropped" in comment for comment in profiles[-1].comments):
            self.assertAlmostEqual(total, seconds, delta=0.02 * seconds + 0.02)
        unseen = sum(pprof.total(profile, harness.CPU, lambda sample: pprof.find_frame(sample, pprof.ACCOUNTED) is not None)
                     for profile in profiles) / 1e9
        self.assertGreater((total - unseen) / total, least_sampled)

    def assert_goes_on(self, service, harm):
        """Does harm to the worker; another one takes over."""
        service.wait_for_profiles(1)
        harm(service.worker)
        worker = service.wait_for_worker(after=service.worker)
        service.wait_for_profiles(2)
        self.assertEqual(service.wait_for_worker(after=service.worker), worker)
        seconds = service.end()
        self.assert_adds_up(service.read_profiles(), seconds, 0.1)
        return service

    def test_worker_killed(self):
        service = self.assert_goes_on(Service(self), lambda pid: os.kill(pid, signal.SIGKILL))
        self.assertIn("killed by SIGKILL", harness.read_text(service.log))
        last = service.read_profiles()[-1]
        self.assertIn("worker: replaced 1 times: 1 crashed", last.comments)

    def test_worker_crashes(self):
        service = self.assert_goes_on(Service(self), lambda pid: os.kill(pid, signal.SIGSEGV))
        self.assertRegex(harness.read_text(service.log), r"crashed: SIGSEGV at 0x[0-9a-f]+ in .*ddprof\+0x")

    def test_worker_hangs(self):
        service = self.assert_goes_on(Service(self), lambda pid: os.kill(pid, signal.SIGSTOP))
        self.assertIn("did not make progress", harness.read_text(service.log))

    def test_worker_without_memory(self):
        """It may survive with what it has or be replaced; either way there are profiles."""
        service = Service(self)
        service.wait_for_profiles(1)
        resource.prlimit(service.worker, resource.RLIMIT_AS, (4096, 4096))
        service.client.errand = "run python3 -c 'sum(i * i for i in range(5000000))'"  # files that it does not know yet
        service.wait_for_profiles(3)
        service.end()

    def test_worker_beyond_its_budget(self):
        """Eight files are executed in turn whose unwind tables take 40 MiB together: giving them up helps for a second at most."""
        files, folder, messages = [self.path("rows%d" % number) for number in range(8)], self.path("budget"), self.path("messages")
        for path in files:
            make_files.many_rows(path, 1_200_000)
        os.makedirs(folder)
        command = [self.binary, "record", "-u", "1", "-F", "999", "--max-memory", "32", "-O", folder + "/", "--", self.puppet("run_pages")]
        with open(messages, "w") as stderr:
            process = subprocess.Popen(command + files, stdout=subprocess.DEVNULL, stderr=stderr, env=self.environment())
        self.addCleanup(process.kill)
        harness.wait_for(lambda: "reached --max-memory; another one takes over" in harness.read_text(messages), 60, "another worker")
        process.terminate()
        process.wait(60)
        self.assertRegex(harness.read_text(messages), r"worker +replaced \d+ times?: \d+ for its memory\n")

    def test_worker_replaced_on_request_loses_nothing(self):
        service = self.assert_goes_on(Service(self), lambda pid: os.kill(os_parent(pid), signal.SIGUSR1))
        lost = sum(pprof.total(profile, harness.CPU, lambda sample: WORKER_LOST in sample.stack) for profile in service.read_profiles())
        self.assertLess(lost / 1e9, 0.1)

    def test_worker_replaced_on_schedule(self):
        service = Service(self, "--worker-period", "2")
        service.wait_for_profiles(5)
        seconds = service.end()
        profiles = service.read_profiles()
        self.assert_adds_up(profiles, seconds, 0.5)
        self.assertTrue(any("as scheduled" in comment for comment in profiles[-1].comments), profiles[-1].comments)
        for before, after in zip(profiles, profiles[1:]):
            self.assertAlmostEqual(before.time_ns + before.duration_ns, after.time_ns, delta=2e6)

    @harness.needs_root
    def test_disk_full(self):
        small = self.path("small")
        os.makedirs(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        service = Service(self, "-O", small + "/")
        service.profiles = small
        service.wait_for_profiles(1)
        filler = os.path.join(small, "filler")
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        time.sleep(2.5)  # some periods
        os.unlink(filler)
        service.wait_for_profiles(2)
        service.end()
        self.assertEqual([name for name in os.listdir(small) if not name.endswith(".pb.gz")], ["index.jsonl"])

    def test_agent_hangs(self):
        """Files are written all the while; once an agent answers at the same place, profiles arrive there too."""
        silent = agent.SilentAgent(self)
        service = Service(self, "-U", silent.url)
        service.wait_for_profiles(4)
        silent.close()
        receiver = agent.Agent(self, port=silent.port)
        receiver.wait_for_posts(3)
        seconds = service.end()
        self.assertEqual(receiver.problems, [])
        self.assert_adds_up(service.read_profiles(), seconds, 0.5)

    def test_supervisor_killed(self):
        service = Service(self)
        service.wait_for_profiles(1)
        os.kill(service.supervisor, signal.SIGKILL)
        harness.wait_for(lambda: not harness.processes_of(self.binary), 30, "the profiler to end")
        service.end()

    def test_both_killed(self):
        service = Service(self)
        service.wait_for_profiles(1)
        for pid in (service.supervisor, service.worker):
            os.kill(pid, signal.SIGKILL)
        service.end()

    def test_fifty_replacements_leak_nothing(self):
        service = Service(self)

        def state():
            return (len(os.listdir("/proc/%d/fd" % service.supervisor)), len(harness.processes_of(self.binary)),
                    int(re.search(r"VmData:\s+(\d+)", harness.read_text("/proc/%d/status" % service.supervisor)).group(1)))
        service.wait_for_profiles(1)
        before = state()
        for _ in range(50):
            os.kill(service.supervisor, signal.SIGUSR1)
            service.worker = service.wait_for_worker(after=service.worker)
        service.wait_for_profiles(1)
        after = state()
        self.assertEqual(after[:2], before[:2])
        self.assertLess(after[2], before[2] + 1024)
        seconds = service.end()
        self.assert_adds_up(service.read_profiles(), seconds, 0.5)


def os_parent(pid):
    return int(harness.read_text("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[1])


if __name__ == "__main__":
    unittest.main()
