"""Profiles of an unreachable peer wait on the disk, in their order, and arrive once each."""

import contextlib
import glob
import os
import re
import socket
import subprocess
import threading
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
        """Of troubles and their end, each with its hint: without the first and the last line of a run."""
        text = harness.read_text(self.log) if os.path.exists(self.log) else ""
        return re.findall(r"\S+Z ddprof\[\d+\]: (?!version |the end, )(.*)", text)

    def end(self):
        self.process.terminate()
        return self.wait()

    def wait(self):
        _, stderr = self.process.communicate(timeout=harness.PATIENCE)
        return stderr


def worker_memory(test):
    """The memory of the largest of our processes, in KiB, without its files and rings, which fill in time."""
    largest = 0
    for pid in harness.processes_of(test.binary):
        with contextlib.suppress(OSError):
            largest = max(largest, int(re.search(r"RssAnon:\s+(\d+)", harness.read_text("/proc/%d/status" % pid)).group(1)))
    return largest


class Outage(harness.SystemTest):
    periods = 6

    def test_all_that_waited_arrives_once_and_in_order(self):
        port = free_port()
        # Busy in the kernel and outside: names of both are read in the first period, and not in the midst of the comparison.
        run = Run(self, port, program=["dd", "if=/dev/zero", "of=/dev/null", "bs=1"])
        run.wait_for_parcels(3)
        before = worker_memory(self)
        run.wait_for_parcels(self.periods)
        self.growth = worker_memory(self) - before
        self.assertLess(self.growth, 4096, "KiB more than after three periods")
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
        self.assertRegex(run.said()[0], r"Connection refused; profiles wait in %s/http_127.0.0.1_\d+-[0-9a-f]{8}; try: start the agent" % run.spool)
        self.assertRegex(run.said()[1], r"^http://127.0.0.1:%d takes profiles again, \d+ had waited$" % port)

    def test_a_later_run_drains_what_an_earlier_one_left(self):
        port = free_port()
        first = Run(self, port, "--exit-timeout", "1", program=["sleep", "2.4"])
        first.wait()
        self.wait_until_profiler_ends()
        left = len(first.parcels())
        self.assertGreaterEqual(left, 1, "whole periods and the rest\n%s" % first.said())
        receiver = agent.Agent(self, port=port)
        second = Run(self, port, spool=first.spool, program=["sleep", "0.2"])
        second.wait()
        self.wait_until_profiler_ends()
        self.assertEqual(sequences(receiver.posts), [list(range(left)), [0]])
        self.assertEqual((second.parcels(), second.said()), ([], []))

    @harness.tries(2)  # an upload waits for three quarters of a period at most: what is answered later comes twice
    def test_several_share_a_spool(self):
        port, runs, spool = free_port(), [], self.path("shared%d" % next(self.numbers))
        for _ in range(3):
            runs.append(Run(self, port, spool=spool))
        runs[0].wait_for_parcels(9)
        receiver = agent.Agent(self, port=port)
        receiver.wait_for_posts(9)
        for run in runs:
            run.end()
        self.wait_until_profiler_ends()
        last = Run(self, port, spool=spool, program=["true"])  # takes what one left while another delivered
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

        def is_within_bound():
            waiting = run.parcels()
            with contextlib.suppress(FileNotFoundError):  # the profiler deletes them meanwhile
                return len(waiting) > 2 and waiting[0] != original and sum(map(os.path.getsize, waiting)) <= 1 << 20
        harness.wait_for(is_within_bound, 30, "the spool within its bound")
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
        small = self.path("small")
        os.makedirs(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        is_down = threading.Event()
        is_down.set()
        receiver = agent.Agent(self, answer=lambda handler: is_down.is_set() and (handler.send_error(503) or True))
        run = Run(self, receiver.server.server_address[1], spool=small)
        run.wait_for_parcels(1)
        filler = os.path.join(small, "filler")
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        harness.wait_for(lambda: len(run.said()) >= 2, 30, "a word about the disk")
        self.assertRegex(run.said()[1], r"^write to %s/\S+: No space left on device; what cannot be delivered is lost now; try: .*--spool-dir" % small)
        goal = receiver.requests + 12  # three for one that waits and three for the new one, at most: by then one was lost
        harness.wait_for(lambda: receiver.requests >= goal, 30, "some periods")
        is_down.clear()
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
        runs = []
        for options in (["--drop-caps"], ["--switch-user", "nobody"]):
            port = free_port()
            runs.append((port, Run(self, port, *options)))
        for _, run in runs:
            run.wait_for_parcels(2)
        receivers = [agent.Agent(self, port=port) for port, _ in runs]
        for receiver, (_, run) in zip(receivers, runs):
            receiver.wait_for_posts(3)
            run.end()
        self.wait_until_profiler_ends()
        for receiver, (_, run) in zip(receivers, runs):
            self.assertEqual(sequences(receiver.posts), [list(range(len(receiver.posts)))])
            self.assertEqual(run.parcels(), [])

    def test_the_end_of_a_run_does_not_wait_for_an_agent_that_hangs(self):
        runs = [Run(self, agent.SilentAgent(self).port, "--exit-timeout", seconds, period=60, program=["true"]) for seconds in ("0", "1")]
        for run in runs:
            run.wait()
        self.wait_until_profiler_ends(8)  # it would have waited ten seconds
        for run in runs:
            self.assertEqual(len(run.parcels()), 1)
            self.assertEqual(len(run.said()), 1)
            self.assertIn("no answer before the profiler had to end; profiles wait in", run.said()[0])


if __name__ == "__main__":
    unittest.main()
