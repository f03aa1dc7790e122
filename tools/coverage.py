#!/usr/bin/env python3
"""What the unit tests reach: a row per module with the lines, branches and functions that ran.

Builds the `coverage` preset, runs every unit test once and prints the table. `--files MODULE` has a row per file of a module.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / "build" / "coverage"
PROFILES = BUILD / "profiles"
KINDS = ("lines", "branches", "functions")


def output_of(*command):
    return subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True).stdout


def is_test_code(path):
    return path.stem.endswith(("_test", "_fixture", "_fuzz", "_bench"))


def run_test(program):
    """Children that a test forks write a file of their own (%p)."""
    environment = dict(os.environ, LLVM_PROFILE_FILE=str(PROFILES / (program.name + ".%p.profraw")))
    log = subprocess.run([program, "--gtest_brief=1"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if log.returncode != 0:
        print("%s failed: what it reached counts all the same" % program.name, file=sys.stderr)


def measure(programs, jobs):
    for old in PROFILES.glob("*"):
        old.unlink()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_test, programs))
    merged = PROFILES / "all.profdata"
    output_of("llvm-profdata", "merge", "-sparse", "--failure-mode=all", "-o", merged, *PROFILES.glob("*.profraw"))
    objects = [part for program in programs[1:] for part in ("-object", program)]
    report = output_of("llvm-cov", "export", "-summary-only", "-instr-profile", merged, programs[0], *objects)
    return json.loads(report)["data"][0]["files"]


def rows_of(files, module):
    """{name: {kind: [covered, count]}} by module, or by file of one module."""
    rows = collections.defaultdict(lambda: {kind: [0, 0] for kind in KINDS})
    for file in files:
        path = (BUILD / file["filename"]).resolve()
        if REPOSITORY / "src" not in path.parents or is_test_code(path):
            continue
        folder = str(path.parent.relative_to(REPOSITORY / "src"))
        if module not in (None, folder):
            continue
        for kind in KINDS:
            for target in (rows[path.name if module else folder], rows["all"]):
                target[kind][0] += file["summary"][kind]["covered"]
                target[kind][1] += file["summary"][kind]["count"]
    return rows


def print_table(rows):
    width = max(map(len, rows))
    print("%-*s %16s %16s %16s" % (width, "", *KINDS))
    for name in sorted(rows, key=lambda row: (row == "all", row)):
        cells = ["%6.1f %% of %5d" % (100 * covered / count if count else 100, count) for covered, count in rows[name].values()]
        print("%-*s %16s %16s %16s" % (width, name, *cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", metavar="MODULE", help="a row per file of this module, such as collect/perf")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    output_of("cmake", "--preset", "coverage")
    output_of("cmake", "--build", "--preset", "coverage", "-j", str(arguments.jobs), "--target", "unit_tests")
    PROFILES.mkdir(exist_ok=True)
    programs = sorted(path for path in (BUILD / "src").rglob("*_test") if path.is_file() and os.access(path, os.X_OK))
    rows = rows_of(measure(programs, arguments.jobs), arguments.files)
    if "all" not in rows:
        sys.exit("coverage: no file of src/%s" % (arguments.files or ""))
    print_table(rows)


if __name__ == "__main__":
    main()
