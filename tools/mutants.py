#!/usr/bin/env python3
"""Changes one operator of the code at a time and asks whether the unit tests of its module notice.

`tools/mutants.py 21 100 -j 2` draws 100 changes; the same seed on the same revision draws the same ones. Each worker has its own copy
of the revision below build/mutants, built with the asan preset. What no test noticed is named at once; --log has a line for each change.
"""
import argparse
import concurrent.futures
import json
import pathlib
import queue
import random
import re
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
COPIES = REPOSITORY / "build" / "mutants"
MODULES = ["unwind", "profile", "symbol", "symbol/dwarf", "process", "collect/perf", "export", "encode", "elf", "session"]
CHANGES = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" == ", " != "), (" && ", " || "), (r"\+= ", "-= "),
           (r" \+ 1\b", " + 2"), (r" - 1\b", " - 0"), ("return true;", "return false;"), ("return false;", "return true;")]
LEAST_TEST_SECONDS = 60  # a change may make a test go on for ever: it gets this, or five times what it took unchanged


def test_of(module):
    return module.replace("/", "_") + "_test"


def changes_of(source):
    """(line number, changed line) for each operator in the file."""
    for number, line in enumerate(source.read_text().split("\n")):
        if line.lstrip().startswith(("//", "#")) or "template" in line:
            continue
        for pattern, replacement in CHANGES:
            if re.search(pattern, line):
                yield number, re.sub(pattern, replacement, line, count=1)


def all_changes(tree):
    for module in MODULES:
        for source in sorted((tree / "src" / module).glob("*.cpp")):
            if not re.search(r"_(test|bench|fuzz|main)\.cpp$", source.name):
                yield from ((module, source.relative_to(tree), *change) for change in changes_of(source))


class Copy:
    """A checkout of the revision with a build folder of its own, for one worker."""

    def __init__(self, number):
        self.tree = COPIES / str(number)
        self.git("worktree", "remove", "--force", self.tree, check=False)
        self.git("worktree", "add", "--quiet", "--detach", self.tree)
        # Sources of a module one by one: a change costs the compilation of one.
        self.run(["cmake", "--preset", "asan", "-DCMAKE_UNITY_BUILD=OFF", "-DDDPROF_FUZZ=OFF"], check=True)

    def git(self, *arguments, check=True):
        subprocess.run(["git", "-C", REPOSITORY, *arguments], capture_output=True, check=check)

    def run(self, command, **options):
        return subprocess.run(command, cwd=self.tree, capture_output=True, text=True, errors="replace", **options)

    def build(self, targets, jobs=1):
        return self.run(["ninja", "-C", "build/asan", "-j", str(jobs), *targets]).returncode == 0

    def test(self, module, *options, **limits):
        binary = self.tree / "build" / "asan" / "src" / module / test_of(module)
        return self.run([binary, "--gtest_brief=1", *options], **limits)


class Baseline:
    """What the unchanged tests do: how long they take, and which fail already and are left out."""

    def __init__(self, copy):
        self.seconds, self.options = {}, {}
        for module in MODULES:
            began = time.monotonic()
            output = copy.test(module).stdout
            self.seconds[module] = time.monotonic() - began
            failing = sorted(set(re.findall(r"^\[  FAILED  \] (\S+?)(?:,| \(|$)", output, re.M)))
            self.options[module] = ["--gtest_filter=-" + ":".join(failing)] if failing else []
            if failing:
                print("fail unchanged, left out: %s: %s" % (module, " ".join(failing)), flush=True)

    def limit(self, module):
        return max(LEAST_TEST_SECONDS, 5 * self.seconds[module])


def outcome(copy, baseline, module, source, number, changed):
    """"noticed", "survived" or "broken" (does not compile)."""
    path = copy.tree / source
    original = path.read_text()
    lines = original.split("\n")
    lines[number] = changed
    path.write_text("\n".join(lines))
    try:
        if not copy.build([test_of(module)]):
            return "broken"
        run = copy.test(module, "--gtest_fail_fast", *baseline.options[module], timeout=baseline.limit(module))
        return "noticed" if run.returncode else "survived"
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        path.write_text(original)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, help="changes that compile")
    parser.add_argument("-j", type=int, default=1, dest="jobs", help="workers, and jobs of the first build")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="draw no further change after this time")
    parser.add_argument("--log", type=pathlib.Path, default=COPIES / "log.jsonl")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    began = time.monotonic()
    COPIES.mkdir(parents=True, exist_ok=True)
    copies = [Copy(number) for number in range(arguments.jobs)]
    for copy in copies:
        if not copy.build([test_of(module) for module in MODULES], arguments.jobs):
            sys.exit("mutants: the unchanged tests do not build in %s" % copy.tree)
    baseline = Baseline(copies[0])
    changes = list(all_changes(copies[0].tree))
    random.Random(arguments.seed).shuffle(changes)

    free = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)
    totals = {"noticed": 0, "survived": 0, "broken": 0}

    def attempt(change):
        copy = free.get()
        try:
            return change, outcome(copy, baseline, *change)
        finally:
            free.put(copy)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, arguments.log.open("w") as log:
        pending = set()
        remaining = iter(changes)
        while True:
            tried = totals["noticed"] + totals["survived"]
            is_time_left = time.monotonic() - began < arguments.seconds
            while is_time_left and len(pending) < min(arguments.jobs, arguments.count - tried):
                change = next(remaining, None)
                if change is None:
                    break
                pending.add(pool.submit(attempt, change))
            if not pending:
                break
            finished, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                (module, source, number, changed), result = future.result()
                totals[result] += 1
                row = {"file": str(source), "line": number + 1, "changed": changed.strip(), "result": result}
                log.write(json.dumps(row) + "\n")
                log.flush()
                if result == "survived":
                    print("%s:%d: %s" % (source, number + 1, changed.strip()), flush=True)
    tried = totals["noticed"] + totals["survived"]
    print("%d of %d noticed, seed %d, %d do not compile" % (totals["noticed"], tried, arguments.seed, totals["broken"]))


if __name__ == "__main__":
    main()
