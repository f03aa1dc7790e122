"""When nobody takes profiles they wait on the disk, in their order, and arrive once each; whatever a peer answers, nothing hangs."""

import contextlib
import glob
import os
import re
import socket
import subprocess
import threading
import time
import unittest

import agent
import harness

IDLE = ["sh", "-c", "while sleep 0.1; do :; done"]


def free_port():
    """One that nobody listens at. The next server may have it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def sequences(posts):
    """Of each run, in the order of arrival."""
    runs = {}
    for post in posts:
        runs.setdefault(post.tags["runtime-id"], []).append(int(post.tags["profile_seq"]))
    return list(runs.values())


class Run:
    """A ddprof beside a program that does little, with a spool and a log of its own, or those of another run."""

    def __init__(self, test, port, *options, period=1, spool=None, program=IDLE, log=None):
        number = next(test.numbers)
        self.test, self.spool, self.log = test, spool or test.path("spool%d" % number), log or test.path("log%d" % number)
        command = [test.binary, "-u", str(period), "-U", "http://127.0.0.1:%d" % port, "--spool-dir", self.spool, "--log-mode", self.log,
                   "-l", "notice", *options, *program]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env=test.environment(), cwd=test.folder)
        test.addCleanup(self.process.kill)

    def parcels(self):
        return sorted(glob.glob(os.path.join(self.spool, "*", "*.parcel")))

    def wait_for_parcels(self, count):
        harness.wait_for(lambda: len(self.parcels()) >= count, 30 + 2 * count, "%d profiles on the disk" % count)

    def said(self):
        """Each with its cure."""
        text = harness.read_text(self.log) if os.path.exists(self.log) else ""
        return re.findall(r"\S+Z ddprof\[\d+\]: (.*(?:\n  try: .*)?)", text)

    def end(self):
        self.process.terminate()
        return self.wait()

    def wait(self):
        _, stderr = self.process.communicate(timeout=60)
        return stderr


def worker_memory(test):
    """The resident memory of the largest of our processes, in KiB."""
    largest = 0
    for pid in harness.processes_of(test.binary):
        with contextlib.suppress(OSError):
            largest = max(largest, int(re.search(r"VmRSS:\s+(\d+)", harness.read_text("/proc/%d/status" % pid)).group(1)))
    return largest


class Outage(harness.SystemTest):
    periods = 10

    def test_all_that_waited_arrives_once_and_in_order(self):
        port = free_port()
        run = Run(self, port)
        run.wait_for_parcels(3)
        before = worker_memory(self)
        run.wait_for_parcels(self.periods)
        self.growth = worker_memory(self) - before
        self.assertLess(self.growth, 2048, "KiB more than after three periods")
        self.waited = len(run.parcels())
        self.spool_bytes = sum(os.path.getsize(path) for path in run.parcels())
        receiver = agent.Agent(self, port=port)
        receiver.wait_for_posts(self.periods + 1)
        harness.wait_for(lambda: not run.parcels(), 30, "an empty spool")
        run.end()
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.problems, [])
        self.assertEqual(sequences(receiver.posts), [list(range(len(receiver.posts)))])
        self.assertGreaterEqual(len(receiver.posts), self.periods + 2)
        self.assertEqual(len(run.said()), 2, run.said())
        self.assertRegex(run.said()[0], r"Connection refused; profiles wait in %s/http_127.0.0.1_\d+-[0-9a-f]{8}\n  try: start the agent" % run.spool)
        self.assertRegex(run.said()[1], r"^http://127.0.0.1:%d takes profiles again, \d+ had waited$" % port)

    def test_a_later_run_drains_what_an_earlier_one_left(self):
        port = free_port()
        first = Run(self, port, "--exit-timeout", "1", program=["sleep", "2.4"])
        first.wait()
        self.wait_until_profiler_ends()
        left = len(first.parcels())
        self.assertGreaterEqual(left, 3, "two periods and the rest\n%s" % first.said())
        receiver = agent.Agent(self, port=port)
        second = Run(self, port, spool=first.spool, program=["sleep", "0.2"])
        second.wait()
        self.wait_until_profiler_ends()
        self.assertEqual(sequences(receiver.posts), [list(range(left)), [0]])
        self.assertEqual((second.parcels(), second.said()), ([], []))

    def test_several_share_a_spool(self):
        port, runs = free_port(), []
        for _ in range(3):
            runs.append(Run(self, port, spool=self.path("shared")))
        runs[0].wait_for_parcels(9)
        receiver = agent.Agent(self, port=port)
        receiver.wait_for_posts(9)
        for run in runs:
            run.end()
        self.wait_until_profiler_ends()
        last = Run(self, port, spool=self.path("shared"), program=["true"])  # takes what one left while another delivered
        last.wait()
        self.wait_until_profiler_ends()
        self.assertEqual(receiver.problems, [])
        self.assertEqual(len(sequences(receiver.posts)), 4)
        for run in sequences(receiver.posts):
            self.assertEqual(run, list(range(len(run))))

    def test_the_oldest_make_room_and_are_counted(self):
        port = free_port()
        first = Run(self, port, program=["sleep", "0.2"])
        first.wait()
        self.wait_until_profiler_ends()
        original, = first.parcels()
        with open(original, "rb") as file:
            content = file.read()
        for number in range((1 << 20) // len(content) + 1):  # so that 1 MiB is not enough
            with open(os.path.join(os.path.dirname(original), "%020d-00000000.parcel" % (number + 1)), "wb") as file:
                file.write(content)
        run = Run(self, port, "--spool-size", "1", spool=first.spool)
        harness.wait_for(lambda: len(run.parcels()) > 2 and run.parcels()[0] != original and sum(map(os.path.getsize, run.parcels())) <= 1 << 20,
                         30, "the spool within its bound")
        time_of_drop = len(run.parcels())
        harness.wait_for(lambda: not any(path.endswith("%020d-00000000.parcel" % 2) for path in run.parcels()), 30, "one more period")
        receiver = agent.Agent(self, port=port)
        harness.wait_for(lambda: not run.parcels(), 30, "an empty spool")
        run.end()
        self.wait_until_profiler_ends()
        self.assertGreater(time_of_drop, 2)
        own = [post for post in receiver.posts if post.tags["runtime-id"] == receiver.posts[-1].tags["runtime-id"]]
        self.assertTrue(any(re.match(r"export: of the profiles, .*\d+ had to be dropped from there", comment) for comment in own[-1].profile.comments),
                        own[-1].profile.comments)

    @harness.needs_root
    def test_profiling_goes_on_with_a_full_disk(self):
        small, port = self.path("small"), free_port()
        os.makedirs(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        run = Run(self, port, spool=small)
        run.wait_for_parcels(1)
        filler = os.path.join(small, "filler")
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        harness.wait_for(lambda: len(run.said()) >= 2, 30, "a word about the disk")
        self.assertRegex(run.said()[1], r"^write to %s/\S+: No space left on device; what nobody takes is lost now\n  try: .*--spool-dir" % small)
        receiver = agent.Agent(self, port=port)
        receiver.wait_for_posts(3)  # although nothing can wait
        os.unlink(filler)
        run.end()
        self.wait_until_profiler_ends()
        numbers, = sequences(receiver.posts)
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(numbers[0], 0)
        self.assertLess(len(numbers), numbers[-1] + 1, "some were lost")
        self.assertRegex("\n".join(receiver.posts[-1].profile.comments), r"export: of the profiles, \d+ failed")

    @harness.needs_root
    def test_parcels_wait_without_privileges_too(self):
        for options in (["--drop-caps"], ["--switch-user", "nobody"]):
            with self.subTest(options):
                port = free_port()
                run = Run(self, port, *options)
                run.wait_for_parcels(2)
                receiver = agent.Agent(self, port=port)
                receiver.wait_for_posts(3)
                run.end()
                self.wait_until_profiler_ends()
                self.assertEqual(sequences(receiver.posts), [list(range(len(receiver.posts)))])
                self.assertEqual(run.parcels(), [])

    def test_the_end_of_a_run_does_not_wait_for_an_agent_that_hangs(self):
        for seconds in ("0", "1"):
            run = Run(self, agent.SilentAgent(self).port, "--exit-timeout", seconds, period=60, program=["true"])
            run.wait()
            self.wait_until_profiler_ends(8)  # it would have waited ten seconds
            self.assertEqual(len(run.parcels()), 1)
            self.assertEqual(len(run.said()), 1)
            self.assertIn("no answer before the profiler had to end; profiles wait in", run.said()[0])


class RawAgent:
    """Accepts, reads a request, and does with the connection what it is told to."""

    def __init__(self, test, serve, reads_body=True):
        self.serve, self.reads_body, self.requests = serve, reads_body, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        test.addCleanup(self.socket.close)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.socket.accept()[0]
                threading.Thread(target=self.handle, args=(connection,), daemon=True).start()

    def handle(self, connection):
        with connection, contextlib.suppress(OSError):
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(1024)
            head, body = received.split(b"\r\n\r\n", 1)
            self.requests += 1
            left = int(re.search(rb"Content-Length: (\d+)", head).group(1)) - len(body)
            while self.reads_body and left > 0:
                left -= len(connection.recv(left))
            self.serve(connection)


def status(number, *headers):
    lines = ["HTTP/1.1 %d Some Reason" % number, "Content-Length: 0", *headers, "", ""]
    return lambda connection: connection.sendall("\r\n".join(lines).encode())


def hang(connection):
    connection.recv(1)  # until it is closed


def dribble(connection):
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        connection.sendall(bytes([byte]))
        time.sleep(1)


def close_at_once(_):
    pass


def cut_answer(connection):
    connection.sendall(b"HTTP/1.1 500 Some Reason\r\nContent-Length: 1000\r\n\r\nfull of sor")


WAITS, LOST, ARRIVES = "waits", "lost", "arrives"
ONCE_A_PERIOD, AGAIN, NEVER_MORE = "once a period", "again in the period", "once"
# What a peer does; what becomes of the profile; how often it is asked; what is said.
ANSWERS = {
    "500": (status(500), WAITS, AGAIN, "answered 500"),
    "500, cut": (cut_answer, WAITS, AGAIN, "answered 500: full of sor"),
    "503": (status(503), WAITS, AGAIN, "answered 503"),
    "408": (status(408), WAITS, AGAIN, "answered 408"),
    "429": (status(429), WAITS, AGAIN, "answered 429"),
    "429, seconds": (status(429, "Retry-After: 3600"), WAITS, NEVER_MORE, "answered 429"),
    "429, date": (status(429, "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"), WAITS, NEVER_MORE, "answered 429"),
    "413": (status(413), LOST, ONCE_A_PERIOD, "answered 413"),
    "400": (status(400), LOST, ONCE_A_PERIOD, "answered 400"),
    "403": (status(403), WAITS, ONCE_A_PERIOD, "answered 403"),
    "404": (status(404), WAITS, ONCE_A_PERIOD, "answered 404"),
    "307": (status(307, "Location: http://elsewhere/?key=1"), WAITS, ONCE_A_PERIOD, "answered 307, redirected to http://elsewhere/;"),
    "garbage": (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), WAITS, AGAIN, "not an HTTP answer"),
    "closes": (close_at_once, WAITS, AGAIN, "(ends too early|reset by peer|Broken pipe)"),
    "hangs": (hang, WAITS, ONCE_A_PERIOD, "no answer"),
    "dribbles": (dribble, WAITS, ONCE_A_PERIOD, "no answer"),
    "202": (status(202), ARRIVES, ONCE_A_PERIOD, None),
}


class Answers(harness.SystemTest):
    def test_every_answer_has_its_consequence(self):
        """All at the same time: two periods and a rest each, beside a program that sleeps."""
        peers = {name: RawAgent(self, serve, reads_body=name != "closes") for name, (serve, *_) in ANSWERS.items()}
        runs = {name: Run(self, peer.port, "--exit-timeout", "1", program=["sleep", "2.2"]) for name, peer in peers.items()}
        for name, run in runs.items():
            self.assertNotIn("ddprof", run.wait(), name)
            self.assertEqual(run.process.returncode, 0, name)
        self.wait_until_profiler_ends(30)
        for name, (_, fate, asked, words) in ANSWERS.items():
            with self.subTest(name):
                run, requests = runs[name], peers[name].requests
                self.assertEqual(len(run.said()), 1 if words else 0, run.said())
                if words:
                    self.assertRegex(run.said()[0], words + r"(.|\n)*\n  try: ")
                    self.assertEqual("; profiles wait in " in run.said()[0], fate == WAITS)
                periods = len(run.parcels()) if fate == WAITS else 3
                self.assertEqual(len(run.parcels()) >= 2, fate == WAITS, run.parcels())
                low, high = {NEVER_MORE: (1, 1), ONCE_A_PERIOD: (1, periods), AGAIN: (periods + 1, 3 * periods)}[asked]
                self.assertTrue(low <= requests <= high, "%d requests in %d periods" % (requests, periods))


if __name__ == "__main__":
    unittest.main()
