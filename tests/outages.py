#!/usr/bin/env python3
"""Leaves the agent of a profiler down for many periods, and then brings it up: all profiles that waited must arrive, once each and in
order, with the profiler's memory flat. Prints the figures. The system test does the same with few periods."""

import argparse
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "system"))
import test_outage  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--periods", type=int, default=100, help="of a second each (100)")
    test_outage.Outage.periods = parser.parse_args().periods
    test = test_outage.Outage("test_all_that_waited_arrives_once_and_in_order")
    begin = time.monotonic()
    result = unittest.TextTestRunner().run(unittest.TestSuite([test]))
    if result.wasSuccessful():
        print("%d profiles (%d KiB) waited and arrived; the profiler grew by %d KiB meanwhile; %d s in all"
              % (test.waited, test.spool_bytes // 1024, test.growth, time.monotonic() - begin))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
