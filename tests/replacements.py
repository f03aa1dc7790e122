#!/usr/bin/env python3
"""Replaces the worker of a profiler under load again and again, by request and by force, and prints what that cost.

Per way of replacing: how many, the CPU time of the target beside the sum of all profiles, what of it was lost with workers,
and the supervisor's descriptors, memory and processes before and after. Ends with status 1 when something has leaked, a
request was lost or the sums differ by more than 1 %."""

import argparse
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
import harness  # noqa: E402
import pprof  # noqa: E402
import test_faults  # noqa: E402


def state(service):
    supervisor = service.supervisor
    status = harness.read_text("/proc/%d/status" % supervisor)
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return len(os.listdir("/proc/%d/fd" % supervisor)), memory, len(harness.processes_of(service.test.binary))


def replace(service, by_force):
    if by_force:
        service.wait_for_profiles(1)  # else the pauses between workers grow
        os.kill(service.worker, signal.SIGKILL)
    else:
        os.kill(service.supervisor, signal.SIGUSR1)
    service.worker = service.wait_for_worker(after=service.worker)


class Replacements(test_faults.Faults):
    count, by_force = 0, False

    def runTest(self):
        service = test_faults.Service(self)
        service.wait_for_profiles(1)
        sums = {"total": 0, "lost": 0, "other": 0}
        read = set()

        def add_profiles():  # old ones are deleted after a while
            for name in service.files():
                if name in read:
                    continue
                read.add(name)
                profile = pprof.read(os.path.join(service.profiles, name))
                sums["total"] += pprof.total(profile, harness.CPU)
                sums["lost"] += pprof.total(profile, harness.CPU, lambda sample: test_faults.WORKER_LOST in sample.stack)
        before = state(service)
        for _ in range(self.count):
            replace(service, self.by_force)
            add_profiles()
        service.wait_for_profiles(1)
        after = state(service)
        seconds = service.end()
        add_profiles()
        print("%5d %-12s target %.2f s, profiles %.2f s (%+.2f %%), lost with workers %.2f s; descriptors %d -> %d, "
              "memory %d -> %d KiB, processes %d -> %d, %d requests answered, %d lost" %
              (self.count, "by force" if self.by_force else "by request", seconds, sums["total"] / 1e9, 100 * (sums["total"] / 1e9 / seconds - 1),
               sums["lost"] / 1e9, before[0], after[0], before[1], after[1], before[2], after[2], service.client.answered, service.client.lost))
        self.assertEqual((before[0], before[2]), (after[0], after[2]))
        self.assertLess(after[1], before[1] + 2048)
        self.assertAlmostEqual(sums["total"] / 1e9 / seconds, 1, delta=0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000, help="replacements by SIGUSR1 (default 1000)")
    parser.add_argument("--kills", type=int, default=100, help="replacements by SIGKILL, one per period of a second (default 100)")
    options = parser.parse_args()
    suite = unittest.TestSuite()
    for count, by_force in ((options.requests, False), (options.kills, True)):
        if count:
            case = Replacements()
            case.count, case.by_force = count, by_force
            suite.addTest(case)
    return 0 if unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
